/* Owns the finding of positions in the log. */
#include "replay/past.h"

#include <inttypes.h>

void past_find(struct scan *scan, const struct position *position, struct past *ret_past) {
  struct event event;
  uint64_t last = scan_last_seq(scan), seq = last;
  if (position->given && position->seq != 0 && position->seq < last) seq = position->seq;
  if (position->given && position->seq == 0) seq = scan_seq_at(scan, position->time_us + 1) - 1;
  *ret_past = (struct past){.seq = seq, .is_end = seq == last};
  if (seq != 0 && scan_get(scan, seq, &event) == STATUS_OK) ret_past->time_us = event.time_us;
}

void past_say(const struct past *past, bool local, struct buffer *out) {
  buffer_append_format(out, "seq %" PRIu64, past->seq);
  if (past->time_us != 0) buffer_append_format(out, ", %s", when_text(past->time_us, local).text);
  if (past->is_end) buffer_append_text(out, ", the end of the log");
}
