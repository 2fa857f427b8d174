<?php
// Arrays, texts, objects, json, regular expressions, generators, files; the same output on any malloc.
ini_set('memory_limit', '-1');
$seed = 42;
function number(int $most): int {
    global $seed;
    $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
    return $seed % $most;
}

class Node {
    public ?Node $left = null, $right = null;
    public function __construct(public int $value, public string $text) {}
    public function add(int $value): void {
        $side = $value < $this->value ? 'left' : 'right';
        if ($this->$side) {
            $this->$side->add($value);
        } else {
            $this->$side = new Node($value, str_repeat(chr(97 + $value % 26), $value % 300));
        }
    }
    public function walk(): Generator {
        if ($this->left) {
            yield from $this->left->walk();
        }
        yield $this->value => strlen($this->text);
        if ($this->right) {
            yield from $this->right->walk();
        }
    }
}

$root = new Node(50000, 'root');
for ($i = 0; $i < 5000; $i++) {
    $root->add(number(100000));
}
$sum = 0;
foreach ($root->walk() as $value => $length) {
    $sum = ($sum * 31 + $value + $length) % 1000000007;
}
echo "tree $sum\n";

$words = [];
for ($i = 0; $i < 100000; $i++) {
    $words['w' . number(20000)][] = $i;
}
ksort($words);
echo 'words ', count($words), ' ', md5(json_encode($words)), ' ', md5(serialize($words)), "\n";
echo 'same ', var_export(unserialize(serialize($words)) == json_decode(json_encode($words), true), true), "\n";

$text = '';
for ($i = 0; $i < 200000; $i++) {
    $text .= dechex(number(65536)) . ' ';
}
echo 'text ', strlen($text), ' ', preg_match_all('/\b([a-f]+)([0-9]+)\b/', $text, $found), ' ', md5(implode(',', $found[2])), "\n";
echo 'replaced ', md5(preg_replace_callback('/[0-9]{3}/', fn($m) => strrev($m[0]) . 'x', $text)), "\n";
usort($found[0], fn($a, $b) => strlen($a) <=> strlen($b) ?: strcmp($a, $b));
echo 'sorted ', md5(implode(' ', $found[0])), "\n";

file_put_contents('work.txt', wordwrap($text, 60, "\n", true));
$lines = new SplFileObject('work.txt');
$heap = new SplMinHeap();
foreach ($lines as $line) {
    $heap->insert(crc32($line));
}
echo 'lines ', count($heap), ' ', $heap->extract(), "\n";
unset($words, $root, $found);
echo 'cycles ', gc_collect_cycles() >= 0 ? 'collected' : '', "\n";
