/* Owns the readers of the feed: what subscriptions are asked for, where each reader stands, and that it is shown every event
 * that it should be, once and in order, at any moment and across starts of the server. */
#include "edge/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "engine/internal.h"
#include "sim/sim.h"

/* ---- subscriptions ---- */

/* A position on either side of the log's end, or somewhere before it. */
static uint64_t some_position(struct sim *sim) {
  uint64_t end = sim->events_read;
  return sim_chance(sim, 20) ? end + sim_roll(sim, 3) : sim_roll(sim, end + 1);
}

static void some_filter(struct sim *sim, struct request *request) {
  const struct model *model = &sim->model;
  request->subscribed.types = (uint8_t)sim_roll(sim, type_lists_max);
  request->queue = sim_chance(sim, 50) ? asked_any : (uint8_t)sim_roll(sim, model->queue_count);
  if (model->task_count != 0 && sim_chance(sim, 20)) request->task_id = model->tasks[sim_roll(sim, model->task_count)].id;
}

static uint8_t some_subscription(struct sim *sim) { return (uint8_t)(1 + sim_roll(sim, sim->model.subscription_count)); }

void step_subscribe(struct sim *sim) {
  struct request request = {.who = (uint8_t)sim_roll(sim, principals_max), .queue = asked_any};
  uint64_t luck = sim_roll(sim, 100);
  if (sim->model.subscription_count == 0 || luck < 20) {
    request.kind = COMMAND_SUBSCRIPTION_CREATE;
    request.subscribed.name = (uint8_t)sim_roll(sim, subscription_names_max);
    request.subscribed.from = (enum feed_from)(FEED_FROM_EARLIEST + sim_roll(sim, 3));
    if (request.subscribed.from == FEED_FROM_POSITION) request.subscribed.position = some_position(sim);
    some_filter(sim, &request);
  } else {
    request.kind = luck < 75 ? COMMAND_SUBSCRIPTION_ACK : luck < 85 ? COMMAND_SUBSCRIPTION_DELETE : COMMAND_GET_SUBSCRIPTION;
    request.subscribed.object = some_subscription(sim);
    if (request.kind == COMMAND_SUBSCRIPTION_ACK) request.subscribed.position = some_position(sim);
  }
  if (request.kind != COMMAND_GET_SUBSCRIPTION) request.key = sim_new_key(sim);
  if (sim_has_place(sim, &request)) (void)sim_ask(sim, &request);
}

void sim_compare_subscription(struct sim *sim, const struct model_object *want, const struct subscription *have) {
  if (!id_equal(&want->id, &have->id) || want->revision != have->revision || want->limits[0] != have->position)
    model_complain(&sim->model, "subscription %s should stand at %llu, revision %llu, and stands at %llu, revision %llu",
                   id_text(&want->id).text, (unsigned long long)want->limits[0], (unsigned long long)want->revision,
                   (unsigned long long)have->position, (unsigned long long)have->revision);
}

void sim_compare_subscription_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                                     const struct answer *answer) {
  sim_compare_subscription(sim, &expected->object, &answer->as.subscription);
  if (answer->created != expected->created || answer->deduplicated != expected->deduplicated)
    model_complain(&sim->model, "%s is answered as done and is not, or the other way", command_kind_text(request->kind));
  if (request->kind == COMMAND_GET_SUBSCRIPTION && answer->log_end != expected->log_end)
    model_complain(&sim->model, "the lag of a subscription is told from %llu, and the log ends at %llu",
                   (unsigned long long)answer->log_end, (unsigned long long)expected->log_end);
}

/* ---- readers ---- */

static struct feed_types types_of(unsigned number) {
  struct feed_types types = {{0, 0}};
  struct bytes names = text_types(number);
  must(names.size == 0 || feed_types_parse(names, &types));
  return types;
}

void sim_compare_opening(struct sim *sim, const struct expected *expected, const struct answer *answer) {
  const struct feed_opening *opening = &answer->as.feed;
  const struct model_filter *want = &expected->filter;
  struct feed_types types = types_of(want->types);
  static const struct id any;
  const struct id *queue_id = want->queue != asked_any ? &sim->model.queues[want->queue].id : &any;
  if (opening->after != expected->after || !feed_types_equal(&types, &opening->filter.types) ||
      !id_equal(queue_id, &opening->filter.queue_id) || !id_equal(&want->task_id, &opening->filter.task_id))
    model_complain(&sim->model, "the feed opens at %llu with another filter, or should at %llu",
                   (unsigned long long)opening->after, (unsigned long long)expected->after);
}

void sim_begin_reading(struct sim *sim, struct pending *pending, const struct expected *expected) {
  struct reader_here *reader = &sim->readers[pending->browser - 1];
  struct answer *answer = &pending->ticket.answer;
  if (answer->status != STATUS_OK) {
    if (answer->status != STATUS_UNAVAILABLE) reader->wanted.kind = (enum command_kind)0; /* it reads nothing any more */
    return;
  }
  reader->filter = expected->filter;
  reader->open = true;
  reader->feed = (struct feed_reader){.filter = answer->as.feed.filter,
                                      .namespace_id = sim->namespace_id,
                                      .scope = answer->as.feed.scope,
                                      .scope_count = answer->as.feed.scope_count,
                                      .after = answer->as.feed.after};
  answer->as.feed.scope = NULL;
}

/* Opens the feed, for the first time or once more behind what was read. */
static void ask_to_read(struct sim *sim, uint8_t number) {
  struct reader_here *reader = &sim->readers[number];
  if (sim_is_asked(sim, true, number + 1U)) return; /* it has not been opened yet */
  if (reader->wanted.kind == 0) {
    reader->wanted =
        (struct request){.kind = COMMAND_OPEN_FEED, .who = (uint8_t)sim_roll(sim, principals_max), .queue = asked_any};
    reader->wanted.subscribed.position = sim_chance(sim, 50) ? 0 : some_position(sim);
    if (sim->model.subscription_count != 0 && sim_chance(sim, 40)) reader->wanted.subscribed.object = some_subscription(sim);
    else some_filter(sim, &reader->wanted);
  }
  sim_ask(sim, &reader->wanted)->browser = (uint8_t)(number + 1);
}

static void expect_none(struct sim *sim, struct reader_here *reader, uint64_t from, uint64_t until) {
  unsigned queue;
  for (uint64_t seq = from; seq <= until; seq++)
    if (model_shows(&sim->model, &reader->filter, reader->wanted.who, seq, &queue))
      model_complain(&sim->model, "a reader of the feed is not shown the event at %llu", (unsigned long long)seq);
}

/* What is written of the event names it. */
static void check_writing(struct sim *sim, const struct feed_event *event) {
  struct buffer *out = &sim->codec.body;
  char position[48], type[48];
  (void)snprintf(position, sizeof position, "\"position\":\"%llu\"", (unsigned long long)event->seq);
  (void)snprintf(type, sizeof type, "\"type\":\"%s\"", event_type_text(event->type));
  buffer_reset(out);
  if (feed_write(sim->feed, out, event) != STATUS_OK || memmem(out->data, out->size, position, strlen(position)) == NULL ||
      memmem(out->data, out->size, type, strlen(type)) == NULL)
    model_complain(&sim->model, "the event at %llu is written as something else", (unsigned long long)event->seq);
}

/* The next event must be this one, or none up to where the reader stands now. */
static bool read_one(struct sim *sim, struct reader_here *reader, uint32_t *looks) {
  struct feed_event event;
  enum feed_found found;
  uint64_t before = reader->feed.after;
  unsigned queue = 0;
  if (feed_next(sim->feed, &reader->feed, looks, &found, &event) != STATUS_OK) {
    model_complain(&sim->model, "the feed cannot be read behind %llu", (unsigned long long)before);
    return false;
  }
  uint64_t after = reader->feed.after;
  expect_none(sim, reader, before + 1, found == FEED_FOUND ? after - 1 : after);
  if (found == FEED_AT_END && after != feed_end(sim->feed)) model_complain(&sim->model, "the feed ends before the log");
  if (found != FEED_FOUND || !sim_is_well(sim)) return false;
  if (event.seq != after || after == before || after > feed_end(sim->feed) ||
      !model_shows(&sim->model, &reader->filter, reader->wanted.who, event.seq, &queue) ||
      event.type != model_log_at(&sim->model, event.seq)->type ||
      !id_equal(&event.owner.queue_id, &sim->model.queues[queue].id))
    model_complain(&sim->model, "a reader of the feed is shown the event at %llu", (unsigned long long)event.seq);
  if (sim_chance(sim, 10)) check_writing(sim, &event);
  return sim_is_well(sim);
}

static void read_on(struct sim *sim, struct reader_here *reader) {
  struct engine *engine = sim->engine;
  struct journal_reader *log;
  uint32_t looks = sim_chance(sim, 20) ? (uint32_t)sim_roll(sim, 30) : feed_scan_events_max,
           page = (uint32_t)sim_roll(sim, 100);
  if (sim->feed == NULL) sim->feed = feed_new();
  must(journal_reader_new(sim->disk, &log) == STATUS_OK);
  struct history *history = history_new();
  if (feed_begin(sim->feed, history, record_source_of_reader(log), engine_position(engine)) != STATUS_OK)
    model_complain(&sim->model, "the feed cannot be read");
  while (page-- != 0 && sim_is_well(sim) && read_one(sim, reader, &looks)) continue;
  history_free(history);
  journal_reader_free(log);
  reader->wanted.subscribed.position = reader->feed.after; /* what it keeps */
}

void sim_read_out(struct sim *sim) {
  for (unsigned i = 0; i < readers_max; i++)
    while (sim->readers[i].open && sim->readers[i].feed.after < sim->events_read && sim_is_well(sim))
      read_on(sim, &sim->readers[i]);
}

void step_feed(struct sim *sim) {
  uint8_t number = (uint8_t)sim_roll(sim, readers_max);
  struct reader_here *reader = &sim->readers[number];
  if (!reader->open) {
    ask_to_read(sim, number);
    return;
  }
  read_on(sim, reader);
  if (sim_chance(sim, 10)) sim_close_reader(sim, number, sim_chance(sim, 50));
}

void sim_close_reader(struct sim *sim, unsigned number, bool for_good) {
  struct reader_here *reader = &sim->readers[number];
  free(reader->feed.scope);
  memset(&reader->feed, 0, sizeof reader->feed);
  reader->open = false;
  if (for_good) memset(&reader->wanted, 0, sizeof reader->wanted);
}

void sim_close_feed(struct sim *sim) {
  for (unsigned i = 0; i < readers_max; i++) sim_close_reader(sim, i, false);
  feed_free(sim->feed);
  sim->feed = NULL;
}
