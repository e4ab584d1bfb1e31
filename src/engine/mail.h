/* How edge threads and the engine hand things to each other: tickets go in through the one bounded mailbox, and come back, with
 * pushes for workers between them, through the outbox of each edge thread. Nothing else is shared. Lock-free; one wake-up a
 * thread and tick. */
#ifndef ORBIT_ENGINE_MAIL_H
#define ORBIT_ENGINE_MAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/answer.h"
#include "core/command.h"

enum mail_kind {
  MAIL_TICKET = 1, /* struct ticket, answered */
  MAIL_ASSIGN,     /* struct push: task.assign */
  MAIL_CANCEL,     /* struct push: task.cancel */
  MAIL_ENDED,      /* struct push: attempt.ended */
  MAIL_DRAINED,    /* struct push: worker.drained */
  MAIL_CLOSE,      /* struct push: close the session (a newer connection of the instance, credential revoked) */
};

struct mail {
  struct mail *next;
  enum mail_kind kind;
};

struct outbox;

/* A command under way. Owned by the edge thread that made it; while the engine has it (from engine_submit until it comes back
 * in the outbox) the edge must not touch it, nor anything that the command's spans point at. */
struct ticket {
  struct mail mail;
  struct outbox *home; /* where it comes back */
  struct command command;
  struct answer answer;        /* filled by the engine */
  struct session_gauge *gauge; /* HELLO only */
  void *owner;                 /* the edge's: a connection or a session */
  int64_t entered_us;          /* monotonic, set by engine_submit: for latency metrics */
};

/* Something that Orbit tells a worker by itself. Made by the engine; the channel frees it with push_free. */
struct push {
  struct mail mail;
  uint64_t session;
  struct task task;       /* ASSIGN: snapshot as of the claim */
  struct attempt attempt; /* ASSIGN: the same */
  struct id task_id, attempt_id;
  enum ended_by ended_by; /* ENDED */
  uint16_t close_code;    /* CLOSE: 4001, 1008 … */
  size_t weight;          /* ASSIGN: what the gauge was raised by */
  struct bytes reason;    /* CANCEL, CLOSE: text behind the push, same allocation */
};
struct push *push_new(enum mail_kind kind, uint64_t session, struct bytes reason);
void push_free(struct push *push);

/* Bytes that wait for a worker's socket: raised by the engine when it leases, and by the channel when it queues anything else;
 * lowered by the channel when written. Owned by the channel, and alive until the session's BYE ticket has come back. */
struct session_gauge {
  _Atomic uint64_t unsent_bytes;
};

/* The way back to one edge thread. */
struct outbox {
  _Atomic(struct mail *) head; /* newest first */
  int event_fd;                /* readable when something is in it; the owner puts it in its epoll or poll */
};
/* IO_ERROR. */
enum status outbox_init(struct outbox *outbox);
void outbox_clear(struct outbox *outbox);
/* Engine side: hands over a chain, oldest first, with one wake-up. */
void outbox_put(struct outbox *outbox, struct mail *oldest, struct mail *newest);
/* Wakes the owner though nothing may be in it. Any thread. */
void outbox_ring(struct outbox *outbox);
/* Owner's side: takes everything, oldest first; NULL when empty. Resets event_fd. */
struct mail *outbox_take(struct outbox *outbox);

#endif
