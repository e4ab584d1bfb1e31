/* One simulated Orbit: the real core, state and engine on a simulated disk and clock, with producers, workers and people around
 * it, and the model beside it. A run is a list of steps; each step holds all its luck in one number, so that steps can be left
 * out and what remains still means something. */
#ifndef ORBIT_TESTS_SIM_SIM_H
#define ORBIT_TESTS_SIM_SIM_H

#include "codec/digest.h"
#include "codec/json.h"
#include "edge/feed.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "sim/disk.h"
#include "sim/model.h"
#include "sim/views.h"
#include "state/checkpoint.h"

/* STEP(NAME, weight): how often it comes, against the others. */
#define STEPS(STEP)   \
  STEP(TICK, 2100)    \
  STEP(WAIT, 700)     \
  STEP(EDGE, 250)     \
  STEP(SUBMIT, 1700)  \
  STEP(BATCH, 120)    \
  STEP(WORK, 2500)    \
  STEP(LATE, 400)     \
  STEP(RENEW, 300)    \
  STEP(CANCEL, 400)   \
  STEP(REVIEW, 350)   \
  STEP(RETRY, 300)    \
  STEP(RACE, 120)     \
  STEP(REPEAT, 450)   \
  STEP(CONFLICT, 100) \
  STEP(READ, 150)     \
  STEP(BROWSE, 150)   \
  STEP(CONNECT, 120)  \
  STEP(LEAVE, 60)     \
  STEP(CAPACITY, 60)  \
  STEP(DRAIN, 20)     \
  STEP(QUEUE, 140)    \
  STEP(ADMIN, 60)     \
  STEP(SCHEDULE, 90)  \
  STEP(FOLLOW, 500)   \
  STEP(SUBSCRIBE, 80) \
  STEP(FEED, 150)     \
  STEP(LOSE, 120)     \
  STEP(DUPLICATE, 60) \
  STEP(CRASH, 6)      \
  STEP(STOP, 2)       \
  STEP(BREAK, 18)     \
  STEP(DISK, 24)      \
  STEP(SLOW, 24)      \
  STEP(CLOCK, 24)     \
  STEP(VIEWS, 12)

enum step_kind {
#define STEP(name, weight) STEP_##name,
  STEPS(STEP)
#undef STEP
      STEP_COUNT
};

struct step {
  enum step_kind kind;
  uint64_t luck;
};

/* What was done to it. */
#define FAULTS(FAULT)                                    \
  FAULT(CRASH, "crash between steps")                    \
  FAULT(STOP, "clean stop and start")                    \
  FAULT(CUT, "crash with commits on their way")          \
  FAULT(LOST_WRITE, "commit lost before its sync")       \
  FAULT(TORN_COMMIT, "torn commit")                      \
  FAULT(LOST_ANSWER, "answers lost behind a commit")     \
  FAULT(FAILED_SYNC, "failed sync")                      \
  FAULT(BROKEN_DISK, "disk broken between commits")      \
  FAULT(FULL_DISK, "full disk")                          \
  FAULT(SLOW_SYNC, "slow sync")                          \
  FAULT(CLOCK_FORWARD, "clock step forward")             \
  FAULT(CLOCK_BACK, "clock step back")                   \
  FAULT(DROPPED, "worker message dropped")               \
  FAULT(DUPLICATED, "worker message duplicated")         \
  FAULT(LATE, "worker message late or out of order")     \
  FAULT(SAME_INSTANCE, "reconnect of the same instance") \
  FAULT(OTHER_INSTANCE, "connect as another instance")   \
  FAULT(DISCONNECT, "disconnect")                        \
  FAULT(REPEAT, "repeat with the same identity")         \
  FAULT(CONFLICT, "same identity, other content")        \
  FAULT(RACE, "cancel, review and retry racing")         \
  FAULT(VIEWS, "views/ full, broken, damaged or removed")

enum fault_kind {
#define FAULT(name, text) FAULT_##name,
  FAULTS(FAULT)
#undef FAULT
      FAULT_COUNT
};
const char *fault_kind_text(enum fault_kind kind);
const char *step_kind_text(enum step_kind kind);

enum { held_max = 6, pending_sets = held_max + 1 };
enum { pending_max = 64, sent_max = 64, workers_max = 6, hands_max = 12, batch_max = 4, browsers_max = 4, readers_max = 3 };

/* What a command points at that is its own. */
struct pending_texts {
  uint8_t token_hash[token_hash_bytes];
};

/* A request on its way: in the mailbox, or on the network. */
struct pending {
  struct request request;
  struct ticket ticket;
  struct pending_texts texts;
  uint8_t browser;     /* who reads this page, from 1 on; 0: nobody goes on from it */
  uint32_t item_count; /* a batch: its submissions; 0: no batch */
  struct request item_requests[batch_max];
  struct batch_item items[batch_max];
};

/* An assignment that a worker knows of. */
struct hand {
  struct id task_id, attempt_id;
  uint64_t epoch;
  bool started, done;
};

/* Somebody who reads the feed on from where he stands, whatever becomes of the server. */
struct reader_here {
  struct request wanted; /* what the feed is opened with, and where he stands; kind 0: he reads nothing */
  struct model_filter filter;
  bool open;
  struct feed_reader feed;
};

struct worker_here {
  uint8_t who, instance;
  uint64_t session; /* 0: not connected */
  struct hand hands[hands_max];
  uint32_t hand_count; /* of all that ever came: the newest hands_max are kept */
  bool was_here;
};

/* What keeps views/, in the place of the server's follower. */
struct follower_here {
  bool keeps; /* this world has views/; its parts below are there */
  struct views_disk *disk;
  struct cold *cold;
  struct checkpoint *checkpoint; /* NULL: not open */
  uint64_t index_min;            /* so many receipts wait before they are sorted in */
  uint8_t stage;                 /* of the follower's round */
  bool is_short;                 /* something failed, and it has not caught up since: what left memory may be out of reach */
};

/* What is needed to write requests out and read them again, and the digests of the world's documents. */
struct codec {
  struct json json;
  struct buffer body, texts, scratch;
  struct id payloads[texts_max], results[texts_max], details[texts_max];
};

struct sim_counts {
  uint64_t commands, commits, events, steps;
  uint64_t left; /* ended tasks that were not in memory when the server went down */
  uint64_t faults[FAULT_COUNT];
  uint64_t digest; /* of the log's bytes */
};

/* A tick that was made, and whose answers have not been judged, because its commit is on its way to the disk. */
struct held {
  struct pending *pending; /* a set of the simulator's */
  uint32_t pending_count;
  int64_t now_us;
  enum room room;
  bool views_short;
  uint64_t last_seq; /* everything up to here it has seen or made */
  bool made;         /* a commit, the last of them its own */
};

struct sim {
  struct model model;
  struct journal *disk;
  struct engine *engine; /* NULL: down */
  struct outbox outbox;
  struct session_gauge gauge;
  struct follower_here follower;
  int64_t hot_window_us, retention_us;
  uint64_t memory_max;
  struct id namespace_id;
  struct codec codec;
  struct id queue_lists[queue_masks][queues_max]; /* by mask, for worker.hello */
  uint32_t queues_listed;
  struct handler_offer handler_lists[8][handlers_offered_max];
  uint64_t seed, dice; /* dice: of the step that is being made */
  int64_t wall_us, monotonic_us, now_us, next_us;
  struct clock clock;
  bool busy;
  uint32_t pending_count;
  struct request sent[sent_max]; /* some requests of before, to be said again */
  uint32_t sent_count;
  struct worker_here workers[workers_max];
  uint64_t keys, sessions, lives;        /* counters of what was given out */
  struct request browsers[browsers_max]; /* the next page that each will ask for; kind 0: reads nothing */
  struct reader_here readers[readers_max];
  struct feed *feed;    /* what the readers share; NULL: none has read yet */
  bool lose_next;       /* the next assignments do not arrive */
  struct event *events; /* of the last commit */
  uint32_t event_count, event_capacity;
  uint64_t events_read; /* seq of the last event that the model has read */
  struct event_decoder *decoder;
  uint32_t ticks_since_check;
  struct sim_counts counts;
  bool trace;
  struct held held[held_max]; /* oldest first */
  uint32_t held_count;
  uint64_t ticks;
  uint64_t tickets_back;                          /* that came with the mail since it was last looked at */
  struct pending *pending;                        /* of the next tick; sets are used in turn */
  struct pending sets[pending_sets][pending_max]; /* large, and only as far as in use: not cleared at the start */
};

/* ---- life.c: engine and disk ---- */

void sim_open(struct sim *sim, uint64_t seed, enum mistake mistake, bool trace);
void sim_close(struct sim *sim);
static inline bool sim_is_well(const struct sim *sim) { return model_is_well(&sim->model); }
uint64_t sim_roll(struct sim *sim, uint64_t sides);
bool sim_chance(struct sim *sim, unsigned of_hundred);
/* The mask of all queues that are there. */
static inline uint8_t sim_all_queues(const struct sim *sim) { return (uint8_t)((1U << sim->model.queue_count) - 1); }
/* Time passes on both clocks. */
void sim_pass_us(struct sim *sim, int64_t us);
/* Time passes up to this time of Orbit's clock. */
void sim_pass_until(struct sim *sim, int64_t until_us);
/* Ends the process without a word. */
void sim_go_down(struct sim *sim);
/* Ends the process and starts it again from the log; what was in the mailbox is gone. */
void sim_restart(struct sim *sim);
/* Stops as a server does that is asked to: no new work, what runs goes on for a while, node.stopped; and starts again. */
void sim_stop(struct sim *sim);
/* Ends the log's reading: folds it anew, and compares with what is served. */
void sim_compare_fold(struct sim *sim);
/* Decodes the events of the commit behind the last event read, which ends the log or is followed by another commit; none where
 * there is none. */
bool sim_read_events(struct sim *sim);

/* ---- tick.c ---- */

/* A new request on its way; full: a tick is made first. */
struct pending *sim_ask(struct sim *sim, const struct request *request);
/* One tick, with everything that is on its way; judges all that came of it. */
void sim_tick(struct sim *sim);
/* What is on its way arrives, and all ticks are judged. */
void sim_settle(struct sim *sim);
/* Judges what is there of the ticks on their way, once the power is on again. They are held no more. */
void sim_judge_survivors(struct sim *sim);
/* All objects of the model against those of the state. */
void sim_compare_all(struct sim *sim);

/* ---- command.c ---- */

void sim_make_lists(struct sim *sim);
struct principal sim_principal(const struct sim *sim, unsigned who);
/* The command that the product is given; texts hold what it points at beside the texts of the world. */
void sim_command(const struct sim *sim, const struct request *request, struct pending_texts *texts, struct command *command);

/* ---- codec.c ---- */

void codec_open(struct codec *codec);
void codec_close(struct codec *codec);
/* Now and then: through JSON the request is the same command. */
void sim_check_codec(struct sim *sim, const struct request *request, const struct command *command);

/* ---- compare.c ---- */

void sim_compare_answer(struct sim *sim, const struct request *request, const struct expected *expected, struct answer *answer);
/* How much of a task is compared: what its own events say, what the log says, or all. */
enum depth { DEPTH_PINNED, DEPTH_FOLDED, DEPTH_LIVE };
void sim_compare_task(struct sim *sim, const struct model_task *want, const struct task *have, const struct attempt *attempt,
                      enum depth depth);
void sim_compare_queue(struct sim *sim, const struct model_queue *want, const struct queue *have, bool counts);
/* What the answer owns is freed. */
void sim_free_answer(struct pending *pending);
/* Takes the messages of the outbox: tickets are dropped (their owner knows them), pushes compared with those that the model
 * expects and given to workers. */
void sim_take_mail(struct sim *sim, bool delivered);

/* ---- feed.c ---- */

void sim_compare_subscription(struct sim *sim, const struct model_object *want, const struct subscription *have);
void sim_compare_subscription_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                                     const struct answer *answer);
void sim_compare_opening(struct sim *sim, const struct expected *expected, const struct answer *answer);
/* The feed was opened for a reader, or will not be; what the answer owns is his. */
void sim_begin_reading(struct sim *sim, struct pending *pending, const struct expected *expected);
void sim_close_reader(struct sim *sim, unsigned number, bool for_good);
/* The server goes down: readers lose their connections, and keep where they stand. */
void sim_close_feed(struct sim *sim);
/* All that read come to the end of the log. */
void sim_read_out(struct sim *sim);
void step_subscribe(struct sim *sim);
void step_feed(struct sim *sim);

/* ---- lists.c ---- */

/* What the page holds against the model. */
void sim_compare_page(struct sim *sim, const struct request *request, struct answer *answer);
/* The browser's page, or the opening of the reader's feed, has been asked for and not been judged; numbers from 1 on. */
bool sim_is_asked(const struct sim *sim, bool feed, unsigned number);
/* Whoever reads the list goes on behind this page. */
void sim_turn_page(struct sim *sim, const struct pending *pending);
/* A page of some list is asked for. */
void step_browse(struct sim *sim);

/* ---- follower.c: views/ ---- */

/* Whether there is one, and how long things stay in memory. */
void sim_views_choose(struct sim *sim);
void sim_views_clear(struct sim *sim);
/* Comes up from views/ where that can be done, and then frees the state that was folded anew; else returns that one. */
struct state *sim_views_up(struct sim *sim, struct state *anew);
/* Before the engine goes, and behind it. */
void sim_views_down(struct sim *sim);
void sim_views_gone(struct sim *sim);
/* Until it has caught up, without a fault. */
void sim_follow_all(struct sim *sim);
/* Once more to the end, and then loaded: the same views. Whoever reads has no store from here on. */
void sim_compare_views(struct sim *sim);
/* The task as it is kept, in memory or (copied to room) in views/. NULL: nowhere. */
const struct task *sim_kept_task(struct sim *sim, const struct id *id, struct task *room);
void step_follow(struct sim *sim);
void step_views(struct sim *sim);

/* ---- admin.c ---- */

/* The model has a place for what the request would make. */
bool sim_has_place(struct sim *sim, const struct request *request);
/* Every token lets in whom it should. */
void sim_compare_tokens(struct sim *sim);
void step_admin(struct sim *sim);

/* ---- schedules.c ---- */

void sim_compare_schedule_answer(struct sim *sim, const struct request *request, const struct expected *expected,
                                 const struct answer *answer);
/* As it lives. */
void sim_compare_schedule(struct sim *sim, const struct model_schedule *want, const struct schedule *have);
void sim_delete_schedules(struct sim *sim);
void step_schedule(struct sim *sim);

/* What a submission says of the task, and of its times. */
void some_task_policy(struct sim *sim, struct request *request);

/* ---- producers.c, workers.c, faults.c: the steps ---- */

uint64_t sim_new_key(struct sim *sim);
void step_submit(struct sim *sim);
void step_batch(struct sim *sim);
void step_cancel(struct sim *sim);
void step_review(struct sim *sim);
void step_retry(struct sim *sim);
void step_race(struct sim *sim);
void step_repeat(struct sim *sim);
void step_conflict(struct sim *sim);
void step_read(struct sim *sim);
void step_queue(struct sim *sim);
void step_work(struct sim *sim);
void step_late(struct sim *sim);
void step_renew(struct sim *sim);
void step_connect(struct sim *sim);
void step_leave(struct sim *sim);
void step_capacity(struct sim *sim);
void step_drain(struct sim *sim);
void step_lose(struct sim *sim);
void step_duplicate(struct sim *sim);
void step_wait(struct sim *sim);
void step_edge(struct sim *sim);
void step_crash(struct sim *sim);
void step_stop(struct sim *sim);
void step_break(struct sim *sim);
void step_disk(struct sim *sim);
/* The fate that came true is counted. */
void sim_count_fate(struct sim *sim);
void step_slow(struct sim *sim);
void step_clock(struct sim *sim);
/* An assignment has come to the worker of this session. */
void worker_receive(struct sim *sim, uint64_t session, const struct id *task_id, const struct id *attempt_id, uint64_t epoch);
/* Faults stop, workers work, reviewers review: everything must come to its end. */
void sim_drain(struct sim *sim);

/* ---- episode.c ---- */

struct episode {
  uint64_t seed;
  const struct step *steps;
  uint32_t count;
  enum mistake mistake;
  bool trace;
};
struct episode_result {
  struct sim_counts counts;
  char complaint[512]; /* empty: nothing was wrong */
  uint32_t step;       /* the step that showed it */
};
/* Runs the steps in a fresh world, then drains. */
void episode_run(const struct episode *episode, struct episode_result *ret_result);
/* The steps of an episode by seed. */
void episode_steps(uint64_t seed, struct step *steps, uint32_t count);

#endif
