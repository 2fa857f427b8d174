/// The reasons why a name of FastMM does not compile, as names of types.
//
// A variable without a counterpart, and a routine that is called without arguments, is a variable
// of such a type with a hint `deprecated`; a routine with arguments has one parameter of the type.
// No program has a value of it, so the compiler refuses every use: the error names the type, and
// where it does not, as for a mere call (`Illegal expression`), the warning for the same line says
// the reason. Free Pascal has no directive that makes the use of a name an error with a text:
// `deprecated`, `experimental` and `unimplemented` are warnings, and `{$message error}` takes
// effect where it stands, not where a name is used.
unit LaneMM.Compat.Reasons;

{$I ../LaneMM.inc}

interface

type
  /// LaneMM has no choice between speed and memory: it adapts.
  LaneMM_needs_no_strategy__remove_this = record end;
  /// LaneMM installs itself when its unit starts.
  LaneMM_installs_itself__remove_this = record end;
  /// LaneMM stays installed, because blocks outlive every finalization.
  LaneMM_is_never_uninstalled__remove_this = record end;
  /// All copies of LaneMM in a process free each other's blocks.
  LaneMM_shares_blocks_with_its_copies__remove_this = record end;
  /// Backtraces and their names need no library.
  LaneMM_needs_no_debug_library__remove_this = record end;
  /// Each thread has a heap; they are as many as threads, and are not numbered.
  LaneMM_has_thread_heaps_instead_of_arenas = record end;
  /// A walk does not distinguish the spans that serve a thread.
  LaneMM_has_no_sequential_feed_spans__remove_this = record end;
  /// The record of a debug block lies apart from the block; its checksum is checked with the block.
  Use_LaneMM_CheckBlock_debug_blocks_have_no_header = record end;
  /// Freed debug blocks wait in the quarantine; the setting `quarantine` is its size.
  Use_the_setting_quarantine_for_freed_debug_blocks = record end;
  /// The order of addresses is not chosen.
  LaneMM_cannot_allocate_top_down__remove_this = record end;
  /// One count for all sizes.
  Use_LaneMM_HeapStatus_Contended_for_all_sizes = record end;
  /// Texts of reports have names and named fields.
  Use_LaneMM_SetMessage_its_texts_have_named_fields = record end;
  /// Text files have no mark at their start.
  LaneMM_writes_UTF_8_without_a_byte_order_mark = record end;
  /// Message boxes do not exist; a set of them has no elements.
  LaneMM_shows_no_message_boxes = (NoMessageBoxEvent);
  /// Message boxes do not exist: a variable that is no set.
  LaneMM_shows_no_message_boxes__remove_this = record end;
  /// A walk over blocks does not know when they were allocated, and from which arena.
  LaneMM_records_no_time_of_allocation = record end;
  /// A list of blocks at a moment.
  Use_LaneMM_TakeSnapshot_and_LaneMM_CompareSnapshots = record end;
  /// Blocks that are in use are freed by their owners alone.
  LaneMM_cannot_free_the_blocks_of_others = record end;
  /// The log of allocations and frees, and its callback.
  Use_the_setting_trace_and_LaneMM_OnEvent = record end;
  /// Routines for C++ Builder.
  LaneMM_is_not_for_C_Builder = record end;
  /// Remote frees never wait in a stack.
  LaneMM_has_no_release_stack__remove_this = record end;

implementation

end.
