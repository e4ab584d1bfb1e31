/* The one way in: a bounded, lock-free stack of tickets with a wake-up for an engine that sleeps. */
#ifndef ORBIT_ENGINE_MAILBOX_H
#define ORBIT_ENGINE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/mail.h"

struct mailbox {
  _Atomic(struct mail *) head; /* newest first */
  _Atomic uint32_t count;      /* tickets that the engine has not taken up yet */
  _Atomic uint32_t wanted;     /* the engine waits on event_fd for so many tickets; 0: it does not, or is being woken */
  int event_fd;
};

enum status mailbox_init(struct mailbox *mailbox); /* IO_ERROR */
void mailbox_clear(struct mailbox *mailbox);
/* False when it is full; unless force. Any thread. */
bool mailbox_put(struct mailbox *mailbox, struct ticket *ticket, bool force);
/* Takes everything, oldest first. The engine. Each ticket counts until mailbox_done. */
struct mail *mailbox_take(struct mailbox *mailbox);
void mailbox_done(struct mailbox *mailbox, uint32_t count);
/* Waits until `wanted` tickets (at least 1) are there, mailbox_wake is called, or timeout_us has passed (-1: no limit). Nothing
 * that was taken before may be left to be done. */
void mailbox_wait(struct mailbox *mailbox, uint32_t wanted, int64_t timeout_us);
void mailbox_wake(struct mailbox *mailbox); /* any thread, async-signal-safe */

#endif
