/* Owns the tick: what one commit takes up, in which order, and when answers leave. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "engine/internal.h"

/* Ids stay above those of the log, whatever the clock says. Those of a server that came up in the last event's millisecond are
 * ahead of its time: the last operation's own id tells how far. */
static void ids_begin(struct engine *engine) {
  struct event last;
  uint64_t seq = journal_last_seq(engine->journal), ms = (uint64_t)journal_last_time_us(engine->journal) / us_per_ms;
  if (seq != 0 && history_event(engine->history, engine_source(engine), seq, &last) == STATUS_OK) {
    uint64_t newest = id_ms(&last.common.operation_id);
    if (newest > ms && newest - ms <= ids_ahead_ms_max) ms = newest;
  }
  journal_reader_release(engine->reader);
  engine->reader_fresh = false;
  engine->ids.last_ms = ms;
  engine->ids.count = UINT16_MAX;
}

struct engine *engine_new(struct journal *journal, struct state *state, const struct engine_options *options) {
  struct engine *engine = guard_calloc(1, sizeof *engine);
  engine->journal = journal;
  engine->state = state;
  engine->history = history_new();
  engine->directory = directory_new();
  engine->zones = zones_new(options->zoneinfo);
  engine->node_id = journal_node_id(journal);
  engine->dispatch_again_us = INT64_MAX;
  engine->hot_window_us = options->hot_window_us;
  engine->retention_us = options->retention_us;
  engine->memory_max = options->memory_max;
  engine->company_min = options->company_min;
  engine->slow_disk_us = options->slow_disk_us;
  if (engine->company_min != 0) flights_begin(engine);
  must(journal_reader_new(journal, &engine->reader) == STATUS_OK);
  must(mailbox_init(&engine->mailbox) == STATUS_OK);
  (void)snprintf(engine->version, sizeof engine->version, "%s", options->version);
  /* Another place of the log, another sequence, though the seed be the same. */
  id_source_init(&engine->ids, options->id_seed ^ (journal_last_seq(journal) * UINT64_C(0x9E3779B97F4A7C15)));
  commit_init(&engine->commit);
  buffer_init(&engine->scratch, SIZE_MAX);
  ids_begin(engine);
  pool_init(&engine->workers, sizeof(struct worker));
  pool_init(&engine->groups, sizeof(struct worker_group));
  (void)pthread_mutex_init(&engine->clock_lock, NULL);
  watches_init(&engine->watches);
  watches_tell(&engine->watches, journal_last_seq(journal));
  clock_init(&engine->clock, clock_wall_us(), clock_monotonic_us(), journal_last_time_us(journal));
  return engine;
}

void engine_free(struct engine *engine) {
  if (engine == NULL) return;
  flights_end(engine);
  workers_clear(engine);
  commit_clear(&engine->commit);
  buffer_clear(&engine->scratch);
  journal_reader_free(engine->reader);
  history_free(engine->history);
  directory_free(engine->directory);
  zones_free(engine->zones);
  state_free(engine->state);
  mailbox_clear(&engine->mailbox);
  watches_clear(&engine->watches);
  (void)pthread_mutex_destroy(&engine->clock_lock);
  free(engine);
}

/* ---- what a tick leads to ---- */

void engine_append(struct engine *engine) {
  for (uint32_t i = 0; i < engine->list.count; i++) {
    struct event *event = &engine->list.events[i];
    const char *reason = "";
    event->prev = state_stream_last(engine->state, event);
    if (commit_add(&engine->commit, event) != STATUS_OK) guard_failed("commit_add", __FILE__, __LINE__, "out of memory");
    if (!state_fold(engine->state, event, &reason)) guard_failed(reason, __FILE__, __LINE__, event_type_text(event->type));
    engine->counters.events++;
    if (event->type == EVENT_application_changed ||
        (event->type >= EVENT_credential_created && event->type <= EVENT_credential_revoked))
      engine->directory_stale = true;
  }
  engine->list.count = 0;
}

struct decide_env engine_env(struct engine *engine) {
  engine->list.count = 0;
  return (struct decide_env){
      .now_us = engine->now_us,
      .node_id = engine->node_id,
      .operation_id = id_source_next(&engine->ids, engine->now_us),
      .next_seq = engine->commit.first_seq + engine->commit.count,
      .new_id = id_source_next(&engine->ids, engine->now_us),
  };
}

static enum status read_record(void *context, uint64_t seq, struct bytes *ret_record) {
  struct engine *engine = context;
  struct bytes staged = commit_record(&engine->commit, seq);
  if (staged.data == NULL) staged = flights_record(engine, seq);
  if (staged.data != NULL) {
    *ret_record = staged;
    return STATUS_OK;
  }
  if (!engine->reader_fresh) {
    enum status status = journal_reader_refresh(engine->reader);
    if (status != STATUS_OK) return status;
    engine->reader_fresh = true;
  }
  return journal_reader_get(engine->reader, seq, ret_record);
}

struct record_source engine_source(struct engine *engine) {
  return (struct record_source){read_record, engine};
}

void engine_depart(struct engine *engine, struct outbox *home, struct mail *mail) {
  struct departure *departure = NULL;
  for (uint32_t i = 0; i < engine->departure_count && departure == NULL; i++)
    if (engine->departures[i].home == home) departure = &engine->departures[i];
  mail->next = NULL;
  if (departure == NULL) {
    must(engine->departure_count < departures_max);
    engine->departures[engine->departure_count++] = (struct departure){home, mail, mail};
    return;
  }
  departure->newest->next = mail;
  departure->newest = mail;
}

/* Counted for metrics as it leaves. */
static void count_departures(struct engine *engine, const struct departure *departure, int64_t now) {
  for (const struct mail *mail = departure->oldest; mail != NULL; mail = mail->next) {
    if (mail->kind != MAIL_TICKET) continue;
    const struct ticket *ticket = (const struct ticket *)mail;
    engine->counters.commands[ticket->command.kind][ticket->answer.status]++;
    latency_add(&engine->counters.answer, now - ticket->entered_us);
  }
}

void engine_depart_all(struct engine *engine, struct departure *departures, uint32_t *count) {
  int64_t now = *count != 0 ? clock_monotonic_us() : 0;
  for (uint32_t i = 0; i < *count; i++) count_departures(engine, &departures[i], now);
  for (uint32_t i = 0; i < *count; i++) outbox_put(departures[i].home, departures[i].oldest, departures[i].newest);
  *count = 0;
}

static void publish_credential(void *context, const struct credential *credential) {
  struct engine *engine = context;
  const struct application *application = state_application(engine->state, &credential->application_id);
  directory_put(engine->directory, credential, application != NULL && application->disabled);
}

static void publish_directory(struct engine *engine) {
  state_each_credential(engine->state, publish_credential, engine);
  engine->directory_stale = false;
}

/* ---- the tick ---- */

/* Room is needed for what is on its way too: when there is none, that must have landed before the disk counts as full. */
static enum status hold_room(struct engine *engine, struct fault *fault) {
  enum status status = journal_reserve(engine->journal, tick_reserve_bytes);
  if (status != STATUS_NO_SPACE || engine->flights.count == 0) return status;
  status = flights_land(engine, 0, fault);
  return status == STATUS_OK ? journal_reserve(engine->journal, tick_reserve_bytes) : status;
}

static enum status tick_begin(struct engine *engine, int64_t now_us, struct fault *fault) {
  engine->now_us = now_us;
  engine->reader_fresh = false;
  engine->list.count = 0;
  engine->dispatch_again_us = INT64_MAX;
  engine->handled = 0;
  commit_reset(&engine->commit, engine->journal, now_us);
  enum status status = hold_room(engine, fault);
  engine->disk_full = status == STATUS_NO_SPACE;
  engine->starved = false;
  if (status == STATUS_OK || engine->disk_full) return STATUS_OK;
  return fault_set(fault, status, NULL, "the log's file cannot be extended: %s", status_text(status));
}

bool engine_has_room(struct engine *engine) {
  if (!engine->disk_full || journal_fits(engine->journal, engine->commit.records.size + command_bytes_max)) return true;
  engine->starved = true;
  return false;
}

static void expire_due(struct engine *engine) {
  for (uint32_t i = 0; i < tick_expiries_max && engine_has_room(engine); i++) {
    uint32_t number = state_timer_due(engine->state, engine->now_us);
    if (number == 0) return;
    attempt_expire(engine, number);
  }
}

static void take_tickets(struct engine *engine) {
  struct mail **end = &engine->waiting;
  while (*end != NULL) end = &(*end)->next;
  *end = mailbox_take(&engine->mailbox);
}

static void handle_tickets(struct engine *engine) {
  if (engine->waiting == NULL) take_tickets(engine);
  while (engine->waiting != NULL && engine->handled < tick_tickets_max && engine->commit.records.size < commit_bytes_max / 2) {
    struct ticket *ticket = (struct ticket *)engine->waiting; /* mail is its first member */
    engine->waiting = ticket->mail.next;
    ticket->mail.kind = MAIL_TICKET;
    engine_depart(engine, ticket->home, &ticket->mail);
    command_handle(engine, ticket);
    engine->handled++;
  }
  mailbox_done(&engine->mailbox, engine->handled);
}

void engine_committed(struct engine *engine, int64_t took_us) {
  enum { of_late = 8 };
  engine->counters.commits++;
  latency_add(&engine->counters.commit, took_us);
  engine->commit_us += (took_us - engine->commit_us) / of_late;
}

/* Written at once, behind what is on its way. */
static enum status tick_commit(struct engine *engine, struct fault *fault) {
  enum status status = flights_land(engine, 0, fault);
  if (status != STATUS_OK || engine->commit.count == 0) return status;
  int64_t before = clock_monotonic_us();
  status = journal_commit(engine->journal, &engine->commit, fault);
  if (status != STATUS_OK) return status;
  watches_tell(&engine->watches, journal_last_seq(engine->journal));
  engine_committed(engine, clock_monotonic_us() - before);
  return STATUS_OK;
}

/* Whether the tick waits for its commit. A lonely one does: another thread would have to be woken for it. So does one on a
 * fast disk, where waking and smaller ticks cost more processor time than the waiting was worth (measured). So does one that
 * changes who is let in, because the directory shows what is durable and nothing else; and one that lives on the reserve, whose
 * room is counted commit by commit. */
static bool waits_for_commit(const struct engine *engine) {
  if (engine->flights.places == NULL || engine->disk_full || engine->directory_stale) return true;
  return engine->flights.count == 0 && (engine->handled < engine->company_min || engine->commit_us < engine->slow_disk_us);
}

static enum status tick_end(struct engine *engine, struct fault *fault) {
  enum status status = STATUS_OK;
  engine->counters.ticks++;
  if (engine->commit.count == 0 && engine->flights.count != 0) {
    flights_join(engine);
  } else if (engine->commit.count != 0 && !waits_for_commit(engine)) {
    flights_take_off(engine);
  } else {
    status = tick_commit(engine, fault);
    if (status != STATUS_OK) return status; /* nothing has been answered, and nothing will be */
    if (engine->directory_stale) publish_directory(engine);
    engine_depart_all(engine, engine->departures, &engine->departure_count);
  }
  return STATUS_OK;
}

/* What has ended leaves memory, behind the answers: some tasks a tick, and the next tick at once when there may be more. */
static bool make_room(struct engine *engine) {
  struct evict_policy policy = {.ended_before_us = engine->now_us - engine->hot_window_us,
                                .memory_max = engine->memory_max - engine->memory_max / memory_beside_parts,
                                .tasks_max = tick_evictions_max};
  bool more = state_evict(engine->state, &policy, engine->history, engine_source(engine)) == tick_evictions_max;
  if (engine->reader_fresh) journal_reader_release(engine->reader);
  return more;
}

enum status engine_tick(struct engine *engine, int64_t now_us, int64_t *ret_next_us, bool *ret_busy, struct fault *fault) {
  enum status status = flights_wait(engine, fault);
  if (status == STATUS_OK) status = tick_begin(engine, now_us, fault);
  if (status != STATUS_OK) return status;
  expire_due(engine);
  triggers_fire(engine);
  retention_move(engine);
  handle_tickets(engine);
  dispatch(engine);
  state_close_cold(engine->state);
  if (engine->reader_fresh) journal_reader_release(engine->reader);
  engine->reader_fresh = false;
  if ((status = tick_end(engine, fault)) != STATUS_OK) return status;
  bool crowded = make_room(engine);
  int64_t timer = time_earlier(state_timer_next(engine->state), triggers_next(engine));
  *ret_next_us = timer < engine->dispatch_again_us ? timer : engine->dispatch_again_us;
  if (crowded) *ret_next_us = now_us;
  if (engine->starved) *ret_next_us = now_us + disk_full_again_us;
  *ret_busy = engine->waiting != NULL || (timer <= now_us && !engine->starved);
  return STATUS_OK;
}

static enum status commit_one(struct engine *engine, struct fault *fault) {
  engine_append(engine);
  return tick_commit(engine, fault); /* no answer waits for these events, and none may leave by this way */
}

enum status engine_start(struct engine *engine, int64_t now_us, struct fault *fault) {
  enum status status = tick_begin(engine, now_us, fault);
  if (status != STATUS_OK) return status;
  engine->up_since = now_us;
  struct decide_env env = engine_env(engine);
  struct event *event =
      event_list_add(&engine->list, EVENT_node_started, &engine->node_id, &env.operation_id, &engine->node_id);
  event->body.node_started.version = bytes_text(engine->version);
  event->body.node_started.clean = journal_was_clean(engine->journal);
  status = commit_one(engine, fault);
  if (status == STATUS_OK) publish_directory(engine);
  return status;
}

enum status engine_finish(struct engine *engine, int64_t now_us, const char *reason, struct fault *fault) {
  enum status status = flights_land(engine, 0, fault);
  if (status == STATUS_OK) status = tick_begin(engine, now_us, fault);
  if (status != STATUS_OK) return status;
  struct decide_env env = engine_env(engine);
  struct event *event =
      event_list_add(&engine->list, EVENT_node_stopped, &engine->node_id, &env.operation_id, &engine->node_id);
  event->body.node_stopped.reason = bytes_text(reason);
  return commit_one(engine, fault);
}

/* ---- any thread ---- */

static bool passes_drain(enum command_kind kind) {
  return kind != COMMAND_SUBMIT && kind != COMMAND_BATCH && kind != COMMAND_RETRY && kind != COMMAND_HELLO;
}

enum status engine_submit(struct engine *engine, struct ticket *ticket, struct fault *fault) {
  bool last_word = ticket->command.kind == COMMAND_BYE;
  if (!last_word && atomic_load(&engine->draining) && !passes_drain(ticket->command.kind)) {
    (void)fault_set(fault, STATUS_UNAVAILABLE, NULL, "Orbit is shutting down; repeat the request with the same identity");
    if (fault != NULL) fault->retry_after_ms = 1000;
    return STATUS_UNAVAILABLE;
  }
  ticket->entered_us = clock_monotonic_us();
  if (mailbox_put(&engine->mailbox, ticket, last_word)) return STATUS_OK;
  atomic_fetch_add(&engine->mailbox_full, 1);
  (void)fault_set(fault, STATUS_UNAVAILABLE, NULL, "too many commands wait; repeat the request with the same identity");
  if (fault != NULL) fault->retry_after_ms = mailbox_full_retry_ms;
  return STATUS_UNAVAILABLE;
}

struct directory *engine_directory(struct engine *engine) {
  return engine->directory;
}

uint64_t engine_position(const struct engine *engine) { return atomic_load(&engine->watches.position); }

void engine_watch(struct engine *engine, struct watch *watch) { watches_add(&engine->watches, watch); }

void engine_unwatch(struct engine *engine, struct watch *watch) { watches_remove(&engine->watches, watch); }

void engine_drain(struct engine *engine) {
  atomic_store(&engine->draining, true);
  mailbox_wake(&engine->mailbox);
}
