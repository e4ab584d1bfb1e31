/* Owns the receipts: a projection from operation identities to the events that carry them. The full identity is read back from
 * the log, so that a receipt costs one slot of memory. */
#include <string.h>

#include "state/internal.h"

uint64_t identity_key(const struct id *identity) {
  uint64_t key;
  memcpy(&key, identity->bytes, sizeof key);
  return key;
}

void receipt_add(struct state *state, const struct id *identity, uint64_t seq) {
  if (!id_is_zero(identity)) index_add(&state->receipts, identity_key(identity), seq);
}

static bool event_carries(const struct event *event, const struct id *identity) {
  return id_equal(&event->common.identity, identity) ||
         (event->type == EVENT_attempt_result && id_equal(&event->body.attempt_result.report_identity, identity));
}

enum status state_receipt(const struct state *state, const struct id *identity, struct history *history,
                          struct record_source source, struct event *ret_event) {
  struct index_cursor cursor;
  for (uint64_t seq = index_find(&state->receipts, identity_key(identity), &cursor); seq != 0;
       seq = index_next(&state->receipts, &cursor)) {
    struct event event;
    enum status status = history_event(history, source, seq, &event);
    if (status != STATUS_OK) return status;
    if (!event_carries(&event, identity)) continue;
    *ret_event = event;
    return STATUS_OK;
  }
  return STATUS_END;
}
