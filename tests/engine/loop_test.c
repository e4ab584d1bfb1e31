/* The engine on a thread of its own, between producers, a worker and readers on theirs, and a disk. */
#include "engine/world.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/digest.h"
#include "engine/internal.h"
#include "journal/internal.h"

enum { patience_ms = 60000 }; /* a lost wake-up ends here */

struct life {
  struct world *world;
  pthread_t engine_thread;
  enum status status;
};

static void *run_engine(void *context) {
  struct life *life = context;
  struct fault fault = {0};
  life->status = engine_run(life->world->engine, &fault);
  return NULL;
}

/* company: as many tickets let a tick go on without its commit; 0: none do. */
static struct life *begin_with(uint32_t company) {
  struct life *life = calloc(1, sizeof *life);
  life->world = malloc(sizeof *life->world);
  world_open(life->world);
  life->world->company_min = company;
  if (company != 0) world_restart(life->world);
  assert_int_equal(pthread_create(&life->engine_thread, NULL, run_engine, life), 0);
  return life;
}

static struct life *begin(void) { return begin_with(0); }

/* Stops the thread; from here on the world is ticked by hand again. */
static void stop(struct life *life) {
  engine_stop(life->world->engine);
  assert_int_equal(pthread_join(life->engine_thread, NULL), 0);
  assert_int_equal(life->status, STATUS_OK);
  life->world->now_us = engine_now_us(life->world->engine);
  world_check(life->world);
}

static void end(struct life *life) {
  world_close(life->world);
  free(life->world);
  free(life);
}

static struct mail *wait_mail(struct outbox *outbox) {
  struct pollfd wait = {outbox->event_fd, POLLIN, 0};
  for (;;) {
    struct mail *mail = outbox_take(outbox);
    if (mail != NULL) return mail;
    must(poll(&wait, 1, patience_ms) == 1);
  }
}

/* One ticket there and back. */
static struct answer ask(struct world *world, struct outbox *outbox, const struct command *command) {
  struct ticket ticket = {.home = outbox, .command = *command};
  struct fault fault = {0};
  must(engine_submit(world->engine, &ticket, &fault) == STATUS_OK);
  struct mail *mail = wait_mail(outbox);
  must(mail == &ticket.mail && mail->next == NULL);
  return ticket.answer;
}

/* ---- producers and a worker ---- */

enum { producers = 4, each = 250, window = 32 };

struct producer {
  struct world *world;
  unsigned number;
  unsigned created, deduplicated;
  pthread_t thread;
};

static struct command numbered(struct world *world, unsigned producer, unsigned i) {
  char key[32];
  (void)snprintf(key, sizeof key, "%u-%u", producer, i);
  return world_submit(world, key);
}

/* Every submission twice, up to a window under way; each comes back once. */
static void *produce(void *context) {
  struct producer *producer = context;
  struct outbox outbox;
  must(outbox_init(&outbox) == STATUS_OK);
  struct ticket *tickets = calloc((size_t)each * 2, sizeof *tickets);
  unsigned sent = 0, back = 0;
  while (back < each * 2) {
    for (; sent < each * 2 && sent - back < window; sent++) {
      struct fault fault = {0};
      tickets[sent] = (struct ticket){.home = &outbox, .command = numbered(producer->world, producer->number, sent / 2)};
      must(engine_submit(producer->world->engine, &tickets[sent], &fault) == STATUS_OK);
    }
    for (struct mail *mail = wait_mail(&outbox); mail != NULL; mail = mail->next, back++) {
      struct ticket *ticket = (struct ticket *)mail;
      must(ticket == &tickets[back]); /* in the order in which they went in */
      must(ticket->answer.status == STATUS_OK && ticket->answer.created != ticket->answer.deduplicated);
      producer->created += ticket->answer.created;
      producer->deduplicated += ticket->answer.deduplicated;
    }
  }
  free(tickets);
  outbox_clear(&outbox);
  return NULL;
}

struct labour {
  struct world *world;
  struct session_gauge gauge;
  unsigned done;
  pthread_t thread;
};

static struct ticket *send(struct world *world, struct outbox *outbox, struct session_gauge *gauge,
                           const struct command *command) {
  struct ticket *ticket = calloc(1, sizeof *ticket);
  struct fault fault = {0};
  *ticket = (struct ticket){.home = outbox, .command = *command, .gauge = gauge};
  must(engine_submit(world->engine, ticket, &fault) == STATUS_OK);
  return ticket;
}

static struct command about(struct world *world, struct id_source *ids, enum command_kind kind, const struct id *task_id,
                            const struct id *attempt_id, uint64_t epoch) {
  struct command command = {.kind = kind, .who = world->who, .session = 1};
  struct attempt_ref ref = {
      .message_id = id_source_next(ids, 1), .task_id = *task_id, .attempt_id = *attempt_id, .epoch = epoch};
  if (kind == COMMAND_FINISH) {
    command.as.finish.ref = ref;
    command.as.finish.report = (struct report){.outcome = OUTCOME_SUCCEEDED, .result = bytes_text("1")};
  } else {
    command.as.ref = ref;
  }
  world_identify(world, &command, "");
  return command;
}

/* Starts and finishes what is assigned until all is done. */
static void *labour(void *context) {
  struct labour *labour = context;
  struct world *world = labour->world;
  struct outbox outbox;
  struct id_source ids;
  must(outbox_init(&outbox) == STATUS_OK);
  id_source_init(&ids, 5);
  struct command hello = world_hello_command(world, 1, 50);
  (void)send(world, &outbox, &labour->gauge, &hello);
  unsigned tickets = 1;
  while (labour->done < producers * each || tickets != 0) {
    for (struct mail *mail = wait_mail(&outbox), *next; mail != NULL; mail = next) {
      next = mail->next;
      if (mail->kind == MAIL_ASSIGN) {
        struct push *push = (struct push *)mail;
        (void)atomic_fetch_sub(&labour->gauge.unsent_bytes, push->weight);
        struct command start = about(world, &ids, COMMAND_START, &push->task_id, &push->attempt_id, push->task.epoch);
        struct command finish = about(world, &ids, COMMAND_FINISH, &push->task_id, &push->attempt_id, push->task.epoch);
        (void)send(world, &outbox, NULL, &start);
        (void)send(world, &outbox, NULL, &finish);
        tickets += 2;
        push_free(push);
        continue;
      }
      must(mail->kind == MAIL_TICKET);
      struct ticket *ticket = (struct ticket *)mail;
      must(ticket->answer.status == STATUS_OK);
      labour->done += ticket->command.kind == COMMAND_FINISH && ticket->answer.as.worker.task_state == TASK_SUCCEEDED;
      free(ticket);
      tickets--;
    }
  }
  struct command bye = {.kind = COMMAND_BYE, .who = world->who, .session = 1};
  (void)ask(world, &outbox, &bye);
  outbox_clear(&outbox);
  return NULL;
}

struct reader {
  struct world *world;
  _Atomic bool over;
  unsigned known;
  pthread_t thread;
};

/* Judges tokens and reads the clock, as the edges do, while credentials come and go. */
static void *read_on(void *context) {
  struct reader *reader = context;
  struct engine *engine = reader->world->engine;
  int64_t last = 0;
  struct principal held = {.permissions = 0};
  while (!atomic_load(&reader->over)) {
    struct principal who;
    struct fault fault = {0};
    int64_t now = engine_now_us(engine);
    must(now >= last);
    last = now;
    if (directory_authenticate(engine_directory(engine), bytes_text("turning-token"), now, &who, &fault) == STATUS_OK) {
      reader->known++;
      held = who;
    }
    (void)directory_check(engine_directory(engine), &held, now);
    (void)directory_generation(engine_directory(engine));
  }
  return NULL;
}

static void many_threads_lose_nothing(uint32_t company) {
  struct life *life = begin_with(company);
  struct world *world = life->world;
  struct producer threads[producers] = {{0}};
  struct labour worker = {.world = world};
  struct reader reader = {.world = world};
  assert_int_equal(pthread_create(&worker.thread, NULL, labour, &worker), 0);
  assert_int_equal(pthread_create(&reader.thread, NULL, read_on, &reader), 0);
  for (unsigned i = 0; i < producers; i++) {
    threads[i] = (struct producer){.world = world, .number = i};
    assert_int_equal(pthread_create(&threads[i].thread, NULL, produce, &threads[i]), 0);
  }
  struct outbox outbox; /* this thread is the administrator: a token comes, turns and goes */
  uint8_t hashes[2][token_hash_bytes];
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  token_hash(bytes_text("turning-token"), hashes[0]);
  token_hash(bytes_text("another-token"), hashes[1]);
  struct command create = world_credential(world, COMMAND_CREDENTIAL_CREATE, NULL);
  create.as.credential.application_id = world->application_id;
  create.as.credential.permissions = 1;
  create.as.credential.token_hash = bytes_of(hashes[0], token_hash_bytes);
  world_identify(world, &create, "c");
  struct id id = ask(world, &outbox, &create).as.credential.id;
  for (unsigned i = 1; i <= 50; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "r%u", i);
    struct command rotate = world_credential(world, COMMAND_CREDENTIAL_ROTATE, &id);
    rotate.as.credential.token_hash = bytes_of(hashes[i % 2], token_hash_bytes);
    world_identify(world, &rotate, key);
    struct answer answer = ask(world, &outbox, &rotate);
    assert_int_equal(answer.status, STATUS_OK);
    assert_int_equal(answer.as.credential.revision, i + 1);
    struct principal who; /* as soon as it is answered it is so */
    struct fault fault = {0};
    assert_int_equal(
        directory_authenticate(engine_directory(world->engine), bytes_text("turning-token"), INT64_MAX, &who, &fault),
        i % 2 == 0 ? STATUS_OK : STATUS_UNAUTHENTICATED);
  }
  for (unsigned i = 0; i < producers; i++) {
    assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
    assert_true(threads[i].created == each && threads[i].deduplicated == each);
  }
  assert_int_equal(pthread_join(worker.thread, NULL), 0);
  assert_int_equal(worker.done, producers * each);
  atomic_store(&reader.over, true);
  assert_int_equal(pthread_join(reader.thread, NULL), 0);
  stop(life);
  struct queue queue = world_get_queue(world, &world->queue_id);
  assert_int_equal(queue.counts[TASK_SUCCEEDED], producers * each);
  assert_int_equal(queue.counts[TASK_WAITING] + queue.counts[TASK_LEASED] + queue.counts[TASK_RUNNING], 0);
  outbox_clear(&outbox);
  end(life);
}

static void many_threads_wait_for_commits(void **context) {
  (void)context;
  many_threads_lose_nothing(0);
}

static void many_threads_beside_commits(void **context) {
  (void)context;
  many_threads_lose_nothing(company_tickets_min);
}

static void every_tick_beside_commits(void **context) {
  (void)context;
  many_threads_lose_nothing(1);
}

/* A task whose time comes while nobody says a word: the engine wakes by itself. */
static void timers_need_no_company(void **context) {
  (void)context;
  struct life *life = begin();
  struct world *world = life->world;
  struct outbox outbox;
  struct session_gauge gauge = {0};
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  struct ticket hello = {.home = &outbox, .command = world_hello_command(world, 1, 5), .gauge = &gauge};
  struct fault fault = {0};
  assert_int_equal(engine_submit(world->engine, &hello, &fault), STATUS_OK);
  assert_ptr_equal(wait_mail(&outbox), &hello.mail);
  struct command command = world_submit(world, "later");
  command.as.submit.available_at = engine_now_us(world->engine) + 50000;
  world_identify(world, &command, "later");
  struct answer answer = ask(world, &outbox, &command);
  assert_int_equal(answer.status, STATUS_OK);
  struct push *push = (struct push *)wait_mail(&outbox);
  assert_int_equal(push->mail.kind, MAIL_ASSIGN);
  assert_true(id_equal(&push->task_id, &answer.as.task.id));
  assert_true(push->attempt.leased_at >= command.as.submit.available_at);
  push_free(push);
  struct command bye = {.kind = COMMAND_BYE, .who = world->who, .session = 1};
  (void)ask(world, &outbox, &bye);
  stop(life);
  outbox_clear(&outbox);
  end(life);
}

/* An outbox whose bell takes no more strokes: the engine that rings it waits until somebody listens. */
static void outbox_block(struct outbox *outbox) {
  uint64_t full = UINT64_MAX - 1;
  assert_int_equal(outbox_init(outbox), STATUS_OK);
  assert_int_equal(fcntl(outbox->event_fd, F_SETFL, 0), 0);
  assert_int_equal(write(outbox->event_fd, &full, sizeof full), (ssize_t)sizeof full);
}

static void outbox_unblock(struct outbox *outbox) {
  uint64_t count;
  assert_int_equal(read(outbox->event_fd, &count, sizeof count), (ssize_t)sizeof count);
  assert_int_equal(fcntl(outbox->event_fd, F_SETFL, O_NONBLOCK), 0);
}

/* Says hello with this lease, submits a task, and starts what is assigned of it. */
static struct command begin_attempt(struct life *life, struct outbox *outbox, struct session_gauge *gauge,
                                    struct id_source *ids, uint32_t lease_ms, const char *key) {
  struct world *world = life->world;
  struct ticket hello = {.home = outbox, .command = world_hello_command(world, 1, 5), .gauge = gauge};
  struct fault fault = {0};
  hello.command.as.hello.lease_ms = lease_ms;
  assert_int_equal(engine_submit(world->engine, &hello, &fault), STATUS_OK);
  assert_ptr_equal(wait_mail(outbox), &hello.mail);
  struct outbox producer;
  assert_int_equal(outbox_init(&producer), STATUS_OK);
  struct command submit = world_submit(world, key);
  assert_int_equal(ask(world, &producer, &submit).status, STATUS_OK);
  outbox_clear(&producer);
  struct push *push = (struct push *)wait_mail(outbox);
  assert_int_equal(push->mail.kind, MAIL_ASSIGN);
  struct command start = about(world, ids, COMMAND_START, &push->task_id, &push->attempt_id, push->task.epoch);
  push_free(push);
  assert_int_equal(ask(world, outbox, &start).status, STATUS_OK);
  return start;
}

/* A disk that does not answer for a while, or a machine that was put to sleep: what workers said meanwhile lies there unheard,
 * and none of them loses its lease for that. */
static void silence_of_orbit_ends_no_lease(void **context) {
  (void)context;
  enum { lease_ms = 1500 };
  struct life *life = begin();
  struct world *world = life->world;
  struct outbox outbox, blocked;
  struct session_gauge gauge = {0};
  struct id_source ids;
  id_source_init(&ids, 11);
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  struct command start = begin_attempt(life, &outbox, &gauge, &ids, lease_ms, "long");
  outbox_block(&blocked);
  struct command get = {.kind = COMMAND_GET_QUEUE, .who = world->who, .as.object_id = world->queue_id};
  struct ticket stuck = {.home = &blocked, .command = get};
  struct fault fault = {0};
  int64_t until = clock_monotonic_us() + INT64_C(1000) * (lease_ms + 700);
  assert_int_equal(engine_submit(world->engine, &stuck, &fault), STATUS_OK);
  while (clock_monotonic_us() < until) (void)poll(NULL, 0, 20); /* the lease runs out */
  struct ticket renew = {.home = &outbox,
                         .command = about(world, &ids, COMMAND_RENEW, &start.as.ref.task_id, &start.as.ref.attempt_id, 1)};
  assert_int_equal(engine_submit(world->engine, &renew, &fault), STATUS_OK);
  outbox_unblock(&blocked);
  assert_ptr_equal(wait_mail(&outbox), &renew.mail);
  if (renew.answer.status != STATUS_OK) fail_msg("%s", renew.answer.fault.message);
  assert_ptr_equal(wait_mail(&blocked), &stuck.mail);
  struct command finish = about(world, &ids, COMMAND_FINISH, &start.as.ref.task_id, &start.as.ref.attempt_id, 1);
  struct answer answer = ask(world, &outbox, &finish);
  assert_true(answer.status == STATUS_OK && answer.as.worker.applied);
  assert_int_equal(answer.as.worker.task_state, TASK_SUCCEEDED);
  struct command bye = {.kind = COMMAND_BYE, .who = world->who, .session = 1};
  (void)ask(world, &outbox, &bye);
  stop(life);
  outbox_clear(&outbox);
  outbox_clear(&blocked);
  end(life);
}

/* A disk that hangs while an assignment waits for it: the lease begins to count when the worker can know of it. */
static void a_disk_that_hangs_ends_no_lease(void **context) {
  (void)context;
  enum { lease_ms = 1500 };
  struct life *life = begin_with(1);
  struct world *world = life->world;
  struct outbox outbox, producer;
  struct session_gauge gauge = {0};
  struct id_source ids;
  struct fault fault = {0};
  MDB_txn *held;
  id_source_init(&ids, 13);
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  assert_int_equal(outbox_init(&producer), STATUS_OK);
  struct command start = begin_attempt(life, &outbox, &gauge, &ids, lease_ms, "first"); /* this worker runs one already */
  assert_int_equal(mdb_txn_begin(world->journal->env, NULL, 0, &held), 0);
  struct ticket submit = {.home = &producer, .command = world_submit(world, "second")};
  int64_t until = clock_monotonic_us() + INT64_C(1000) * (lease_ms + 700);
  assert_int_equal(engine_submit(world->engine, &submit, &fault), STATUS_OK);
  while (clock_monotonic_us() < until) (void)poll(NULL, 0, 20); /* both leases would run out */
  assert_null(outbox_take(&producer));
  struct ticket renew = {.home = &outbox,
                         .command = about(world, &ids, COMMAND_RENEW, &start.as.ref.task_id, &start.as.ref.attempt_id, 1)};
  assert_int_equal(engine_submit(world->engine, &renew, &fault), STATUS_OK);
  mdb_txn_abort(held);
  assert_ptr_equal(wait_mail(&producer), &submit.mail);
  bool renewed = false, assigned = false;
  while (!renewed || !assigned) {
    for (struct mail *mail = wait_mail(&outbox), *next; mail != NULL; mail = next) {
      next = mail->next;
      renewed = renewed || mail == &renew.mail;
      if (mail->kind == MAIL_TICKET) continue;
      assert_int_equal(mail->kind, MAIL_ASSIGN); /* not that something ended */
      struct push *push = (struct push *)mail;
      start = about(world, &ids, COMMAND_START, &push->task_id, &push->attempt_id, push->task.epoch);
      assigned = true;
      push_free(push);
    }
  }
  if (renew.answer.status != STATUS_OK) fail_msg("%s", renew.answer.fault.message);
  struct answer answer = ask(world, &outbox, &start);
  if (answer.status != STATUS_OK) fail_msg("%s", answer.fault.message);
  struct command bye = {.kind = COMMAND_BYE, .who = world->who, .session = 1};
  (void)ask(world, &outbox, &bye);
  stop(life);
  outbox_clear(&outbox);
  outbox_clear(&producer);
  end(life);
}

/* A worker that is silent while Orbit listens loses its lease when it is over. */
static void silence_of_a_worker_does(void **context) {
  (void)context;
  struct life *life = begin();
  struct world *world = life->world;
  struct outbox outbox;
  struct session_gauge gauge = {0};
  struct id_source ids;
  id_source_init(&ids, 12);
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  (void)begin_attempt(life, &outbox, &gauge, &ids, 300, "lost");
  struct push *push = (struct push *)wait_mail(&outbox);
  assert_int_equal(push->mail.kind, MAIL_ENDED);
  assert_int_equal(push->ended_by, ENDED_LEASE_EXPIRED);
  push_free(push);
  struct command bye = {.kind = COMMAND_BYE, .who = world->who, .session = 1};
  (void)ask(world, &outbox, &bye);
  stop(life);
  outbox_clear(&outbox);
  end(life);
}

/* While producers go on, Orbit drains: each submission is refused at the door or answered, and what was answered is there. */
static void *produce_until_refused(void *context) {
  struct producer *producer = context;
  struct outbox outbox;
  must(outbox_init(&outbox) == STATUS_OK);
  for (unsigned i = 0;; i++) {
    struct ticket ticket = {.home = &outbox, .command = numbered(producer->world, producer->number, i)};
    struct fault fault = {0};
    if (engine_submit(producer->world->engine, &ticket, &fault) != STATUS_OK) {
      must(fault.status == STATUS_UNAVAILABLE && fault.retry_after_ms > 0);
      break;
    }
    must(wait_mail(&outbox) == &ticket.mail && ticket.answer.status == STATUS_OK);
    producer->created++;
  }
  outbox_clear(&outbox);
  return NULL;
}

static void draining_answers_all_that_it_took(void **context) {
  (void)context;
  struct life *life = begin();
  struct world *world = life->world;
  struct producer threads[producers] = {{0}};
  struct outbox outbox;
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  for (unsigned i = 0; i < producers; i++) {
    threads[i] = (struct producer){.world = world, .number = i};
    assert_int_equal(pthread_create(&threads[i].thread, NULL, produce_until_refused, &threads[i]), 0);
  }
  struct command get = {.kind = COMMAND_GET_QUEUE, .who = world->who, .as.object_id = world->queue_id};
  while (ask(world, &outbox, &get).as.queue.counts[TASK_WAITING] < 100) continue;
  engine_drain(world->engine);
  unsigned created = 0;
  for (unsigned i = 0; i < producers; i++) {
    assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
    created += threads[i].created;
  }
  assert_int_equal(ask(world, &outbox, &get).as.queue.counts[TASK_WAITING], created); /* reads still pass */
  stop(life);
  outbox_clear(&outbox);
  end(life);
}

/* ---- a disk that fails ---- */

static _Atomic bool disk_fails;

/* Stands before libc's own for liblmdb too. */
int fdatasync(int file) {
  if (!atomic_load(&disk_fails)) return (int)syscall(SYS_fdatasync, file);
  errno = EIO;
  return -1;
}

/* Memory is ahead of the log then: the loop ends, and who waits for that commit gets no answer. */
static void a_failed_commit_ends_the_loop(void **context) {
  (void)context;
  for (uint32_t company = 0; company <= 1; company++) {
    struct life *life = begin_with(company);
    struct outbox outbox;
    struct command first = numbered(life->world, 1, 1), second = numbered(life->world, 1, 2);
    struct ticket ticket = {.home = &outbox, .command = second};
    struct fault fault = {0};
    struct timespec until;
    assert_int_equal(outbox_init(&outbox), STATUS_OK);
    assert_int_equal(ask(life->world, &outbox, &first).status, STATUS_OK);
    atomic_store(&disk_fails, true);
    assert_int_equal(engine_submit(life->world->engine, &ticket, &fault), STATUS_OK);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_sec += patience_ms / 1000;
    assert_int_equal(pthread_timedjoin_np(life->engine_thread, NULL, &until), 0);
    assert_int_equal(life->status, STATUS_IO_ERROR);
    assert_null(outbox_take(&outbox));
    atomic_store(&disk_fails, false);
    outbox_clear(&outbox);
    end(life);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_threads_wait_for_commits),  cmocka_unit_test(many_threads_beside_commits),
      cmocka_unit_test(every_tick_beside_commits),      cmocka_unit_test(timers_need_no_company),
      cmocka_unit_test(silence_of_orbit_ends_no_lease), cmocka_unit_test(a_disk_that_hangs_ends_no_lease),
      cmocka_unit_test(silence_of_a_worker_does),       cmocka_unit_test(draining_answers_all_that_it_took),
      cmocka_unit_test(a_failed_commit_ends_the_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
