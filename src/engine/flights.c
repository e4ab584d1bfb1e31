/* Owns the commits that are on their way to the disk while the engine goes on: what waits for each, and the order in which they
 * land. */
#include <stdlib.h>

#include "base/guard.h"
#include "engine/internal.h"

/* The i-th oldest. */
static struct flight *flight_at(const struct engine *engine, uint32_t i) {
  return &engine->flights.places[(engine->flights.first + i) % commits_in_flight_max];
}

static void told(void *context) { mailbox_wake(&((struct engine *)context)->mailbox); }

void flights_begin(struct engine *engine) {
  engine->flights.places = guard_calloc(commits_in_flight_max, sizeof *engine->flights.places);
  for (uint32_t i = 0; i < commits_in_flight_max; i++) commit_init(&engine->flights.places[i].commit);
  journal_write_behind(engine->journal, told, engine);
}

/* Those who asked find no answer, as after a crash. */
static void drop(struct departure *departure) {
  for (struct mail *mail = departure->oldest, *next; mail != NULL; mail = next) {
    next = mail->next;
    if (mail->kind != MAIL_TICKET) push_free((struct push *)mail);
  }
}

void flights_end(struct engine *engine) {
  if (engine->flights.places == NULL) return;
  journal_quiet(engine->journal);
  for (uint32_t i = 0; i < engine->flights.count; i++)
    for (uint32_t k = 0; k < flight_at(engine, i)->departure_count; k++) drop(&flight_at(engine, i)->departures[k]);
  for (uint32_t i = 0; i < commits_in_flight_max; i++) commit_clear(&engine->flights.places[i].commit);
  free(engine->flights.places);
}

/* ---- on their way ---- */

static void add_departure(struct flight *flight, const struct departure *departure) {
  for (uint32_t i = 0; i < flight->departure_count; i++) {
    if (flight->departures[i].home != departure->home) continue;
    flight->departures[i].newest->next = departure->oldest;
    flight->departures[i].newest = departure->newest;
    return;
  }
  must(flight->departure_count < departures_max);
  flight->departures[flight->departure_count++] = *departure;
}

static void take_departures(struct engine *engine, struct flight *flight) {
  for (uint32_t i = 0; i < engine->departure_count; i++) add_departure(flight, &engine->departures[i]);
  engine->departure_count = 0;
}

void flights_join(struct engine *engine) {
  must(engine->commit.count == 0);
  take_departures(engine, flight_at(engine, engine->flights.count - 1));
}

void flights_take_off(struct engine *engine) {
  must(engine->flights.count < commits_in_flight_max);
  struct flight *flight = flight_at(engine, engine->flights.count++);
  struct commit empty = flight->commit;
  flight->commit = engine->commit;
  engine->commit = empty;
  commit_reset(&engine->commit, engine->journal, flight->commit.time_us); /* nothing of an older one stands in it */
  flight->handed_us = clock_monotonic_us();
  flight->departure_count = 0;
  take_departures(engine, flight);
  engine->flights.bytes += flight->commit.records.size;
  journal_hand_over(engine->journal, &flight->commit);
}

struct bytes flights_record(const struct engine *engine, uint64_t seq) {
  struct bytes record = {NULL, 0};
  for (uint32_t i = 0; i < engine->flights.count && record.data == NULL; i++)
    record = commit_record(&flight_at(engine, i)->commit, seq);
  return record;
}

bool flights_hang(const struct engine *engine) {
  return engine->flights.count != 0 && clock_monotonic_us() - flight_at(engine, 0)->handed_us > flight_us_max;
}

int64_t flights_since_us(const struct engine *engine) { return flight_at(engine, 0)->commit.time_us; }

/* ---- landing ---- */

static uint64_t last_seq(const struct flight *flight) { return flight->commit.first_seq + flight->commit.count - 1; }

static void land_oldest(struct engine *engine) {
  struct flight *flight = flight_at(engine, 0);
  engine_committed(engine, clock_monotonic_us() - flight->handed_us);
  engine_depart_all(engine, flight->departures, &flight->departure_count);
  engine->flights.bytes -= flight->commit.records.size;
  engine->flights.first = (engine->flights.first + 1) % commits_in_flight_max;
  engine->flights.count--;
  if (flight->commit.records.capacity > flight_kept_bytes_max) commit_clear(&flight->commit);
}

enum status flights_land(struct engine *engine, uint32_t left, struct fault *fault) {
  while (engine->flights.count != 0) {
    uint64_t wanted = engine->flights.count > left ? last_seq(flight_at(engine, engine->flights.count - 1 - left)) : 0, durable;
    enum status status = journal_settled(engine->journal, wanted, &durable, fault);
    if (status != STATUS_OK) return status;
    if (durable < last_seq(flight_at(engine, 0))) return STATUS_OK;
    watches_tell(&engine->watches, durable);
    while (engine->flights.count != 0 && last_seq(flight_at(engine, 0)) <= durable) land_oldest(engine);
  }
  return STATUS_OK;
}

enum status flights_wait(struct engine *engine, struct fault *fault) {
  enum status status = flights_land(engine, commits_in_flight_max - 1, fault);
  while (status == STATUS_OK && engine->flights.bytes > flight_bytes_max)
    status = flights_land(engine, engine->flights.count - 1, fault);
  return status;
}

enum status engine_land(struct engine *engine, bool wait, struct fault *fault) {
  return flights_land(engine, wait ? 0 : commits_in_flight_max, fault);
}
