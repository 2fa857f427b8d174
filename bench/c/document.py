"""What python is measured with beside work.py: one document as text and as objects."""

import hashlib
import json

data = {f"k{i}": [{"id": j * i, "text": "x" * (j % 9)} for j in range(i % 40)] for i in range(8000)}
text = json.dumps(data, sort_keys=True)
for _ in range(3):
    assert json.loads(text) == data
print(hashlib.sha256(text.encode()).hexdigest())
