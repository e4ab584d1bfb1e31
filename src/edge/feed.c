/* Owns the window over the newest events, and the search for what a reader is shown. */
#include "edge/feed.h"

#include <stdlib.h>

#include "base/guard.h"
#include "codec/wire_feed.h"
#include "core/decision.h"

struct feed {
  struct owners *owners;
  struct history *history; /* of this round, as all until the window */
  struct record_source source;
  uint64_t end;
  uint64_t window_first, window_last; /* seqs; last 0: nothing is in it */
  struct feed_event window[feed_window_events];
};

struct feed *feed_new(void) {
  struct feed *feed = guard_calloc(1, sizeof *feed);
  feed->owners = owners_new();
  return feed;
}

void feed_free(struct feed *feed) {
  if (feed == NULL) return;
  owners_free(feed->owners);
  free(feed);
}

uint64_t feed_end(const struct feed *feed) { return feed->end; }

/* ---- What an event is ---- */

static enum status read_header(struct feed *feed, uint64_t seq, struct event *ret_header) {
  struct bytes record;
  enum status status = feed->source.get(feed->source.context, seq, &record);
  if (status != STATUS_OK) return status == STATUS_END ? STATUS_CORRUPT : status;
  if (record_header_decode(record, ret_header) != STATUS_OK || ret_header->seq != seq) return STATUS_CORRUPT;
  return STATUS_OK;
}

static enum status find_owner(struct feed *feed, const struct event *header, struct feed_event *event) {
  return owners_find(feed->owners, feed->history, feed->source, header, &event->owner);
}

static enum status look(struct feed *feed, uint64_t seq, struct feed_event *ret_event) {
  struct event header;
  enum status status = read_header(feed, seq, &header);
  if (status != STATUS_OK) return status;
  struct feed_event event = {.seq = seq, .type = header.type, .stream = header.stream};
  if (feed_shows_type(header.type)) status = find_owner(feed, &header, &event);
  if (status == STATUS_OK) *ret_event = event;
  return status;
}

enum status feed_begin(struct feed *feed, struct history *history, struct record_source source, uint64_t end) {
  feed->history = history;
  feed->source = source;
  feed->end = end;
  uint64_t from = feed->window_last + 1;
  if (end > feed_window_events && from < end - feed_window_events + 1) from = end - feed_window_events + 1;
  if (from != feed->window_last + 1 || feed->window_last == 0) feed->window_first = from;
  for (uint64_t seq = from; seq <= end; seq++) {
    enum status status = look(feed, seq, &feed->window[seq % feed_window_events]);
    if (status != STATUS_OK) return status;
    feed->window_last = seq;
  }
  if (end > feed_window_events && feed->window_first < end - feed_window_events + 1)
    feed->window_first = end - feed_window_events + 1;
  return STATUS_OK;
}

/* ---- What a reader is shown ---- */

static bool in_scope(const struct feed_reader *reader, const struct id *queue_id) {
  if (reader->scope == NULL) return true;
  for (uint32_t i = 0; i < reader->scope_count; i++)
    if (id_equal(&reader->scope[i], queue_id)) return true;
  return false;
}

/* What can be said without knowing whose it is. */
static bool may_show(const struct feed_reader *reader, enum event_type type, const struct id *stream) {
  return feed_types_have(&reader->filter.types, type) &&
         (id_is_zero(&reader->filter.task_id) || id_equal(&reader->filter.task_id, stream));
}

static bool shows(const struct feed_reader *reader, const struct feed_event *event) {
  return may_show(reader, event->type, &event->stream) && id_equal(&reader->namespace_id, &event->owner.namespace_id) &&
         (id_is_zero(&reader->filter.queue_id) || id_equal(&reader->filter.queue_id, &event->owner.queue_id)) &&
         in_scope(reader, &event->owner.queue_id);
}

/* An event that is older than the window: its owner is looked for only when it matters. */
static enum status judge_old(struct feed *feed, const struct feed_reader *reader, uint64_t seq, struct feed_event *ret_event,
                             bool *ret_shows) {
  struct event header;
  enum status status = read_header(feed, seq, &header);
  if (status != STATUS_OK) return status;
  *ret_shows = false;
  if (!may_show(reader, header.type, &header.stream)) return STATUS_OK;
  *ret_event = (struct feed_event){.seq = seq, .type = header.type, .stream = header.stream};
  status = find_owner(feed, &header, ret_event);
  if (status == STATUS_OK) *ret_shows = shows(reader, ret_event);
  return status;
}

enum status feed_next(struct feed *feed, struct feed_reader *reader, uint32_t *looks, enum feed_found *ret_found,
                      struct feed_event *ret_event) {
  while (reader->after < feed->end) {
    uint64_t seq = reader->after + 1;
    bool shown = false;
    if (*looks == 0) {
      *ret_found = FEED_ENOUGH;
      return STATUS_OK;
    }
    --*looks;
    if (seq >= feed->window_first && seq <= feed->window_last) {
      shown = shows(reader, &feed->window[seq % feed_window_events]);
      if (shown) *ret_event = feed->window[seq % feed_window_events];
    } else {
      enum status status = judge_old(feed, reader, seq, ret_event, &shown);
      if (status != STATUS_OK) return status;
    }
    reader->after = seq;
    if (!shown) continue;
    *ret_found = FEED_FOUND;
    return STATUS_OK;
  }
  *ret_found = FEED_AT_END;
  return STATUS_OK;
}

/* ---- Writing ---- */

/* The report that a decision was made from stands right before it in the task's stream. */
static enum status read_report(struct feed *feed, const struct event *decision, struct event *report, bool *ret_found) {
  struct decision_record record;
  *ret_found = false;
  if (decision->prev == 0 || decision->offset == 0 || !decision_of_event(decision, &record)) return STATUS_OK;
  enum status status = history_event(feed->history, feed->source, decision->prev, report);
  if (status != STATUS_OK) return status;
  *ret_found = report->type == EVENT_attempt_result && id_equal(&report->stream, &decision->stream) &&
               id_equal(&report->common.operation_id, &decision->common.operation_id);
  return STATUS_OK;
}

enum status feed_write(struct feed *feed, struct buffer *out, const struct feed_event *event) {
  struct event whole, report;
  bool reported = false;
  enum status status = history_event(feed->history, feed->source, event->seq, &whole);
  if (status == STATUS_OK) status = read_report(feed, &whole, &report, &reported);
  if (status != STATUS_OK) return status;
  wire_feed_event_write(out, &whole, reported ? &report : NULL, &event->owner.queue_id);
  return STATUS_OK;
}
