/* Owns the way back from the engine: the outbox of an edge thread, and the pushes that travel in it. The engine puts whole
 * chains, so a tick costs one exchange and at most one wake-up for each thread. */
#include "engine/mail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/guard.h"

struct push *push_new(enum mail_kind kind, uint64_t session, struct bytes reason) {
  must(kind > MAIL_TICKET && kind <= MAIL_CLOSE);
  size_t size;
  must(!__builtin_add_overflow(sizeof(struct push), reason.size, &size));
  struct push *push = guard_malloc(size);
  memset(push, 0, sizeof *push);
  push->mail.kind = kind;
  push->session = session;
  if (reason.data != NULL) {
    uint8_t *copy = (uint8_t *)(push + 1);
    if (reason.size > 0) memcpy(copy, reason.data, reason.size);
    push->reason = bytes_of(copy, reason.size);
  }
  return push;
}

void push_free(struct push *push) { free(push); }

enum status outbox_init(struct outbox *outbox) {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return STATUS_IO_ERROR;
  atomic_init(&outbox->head, NULL);
  outbox->event_fd = fd;
  return STATUS_OK;
}

/* Pushes that nobody took are for nobody; a ticket that nobody took would be a caller who still waits for it. */
void outbox_clear(struct outbox *outbox) {
  struct mail *mail = atomic_exchange_explicit(&outbox->head, NULL, memory_order_acquire);
  while (mail != NULL) {
    struct mail *next = mail->next;
    must(mail->kind != MAIL_TICKET);
    push_free((struct push *)mail);
    mail = next;
  }
  guard_close(&outbox->event_fd);
  outbox->event_fd = -1;
}

/* Turns a chain round and returns its new first. */
static struct mail *chain_reverse(struct mail *first) {
  struct mail *reversed = NULL;
  while (first != NULL) {
    struct mail *next = first->next;
    first->next = reversed;
    reversed = first;
    first = next;
  }
  return reversed;
}

void outbox_ring(struct outbox *outbox) {
  static const uint64_t one = 1;
  ssize_t written;
  do written = write(outbox->event_fd, &one, sizeof one);
  while (written < 0 && errno == EINTR);
  /* EAGAIN means that the counter is full, so the owner is being woken already. */
  must(written == (ssize_t)sizeof one || errno == EAGAIN);
}

void outbox_put(struct outbox *outbox, struct mail *oldest, struct mail *newest) {
  must(oldest != NULL && newest != NULL);
  newest->next = NULL;
  struct mail *top = chain_reverse(oldest);
  must(top == newest);
  struct mail *head = atomic_load_explicit(&outbox->head, memory_order_relaxed);
  do oldest->next = head;
  while (!atomic_compare_exchange_weak_explicit(&outbox->head, &head, top, memory_order_release, memory_order_relaxed));
  /* Where something lay already, whoever put it there wakes the owner for both. */
  if (head == NULL) outbox_ring(outbox);
}

struct mail *outbox_take(struct outbox *outbox) {
  /* The wake-up is taken back before the mail is: what is put in between is taken now and wakes once for nothing. */
  uint64_t count;
  ssize_t got;
  do got = read(outbox->event_fd, &count, sizeof count);
  while (got < 0 && errno == EINTR);
  must(got == (ssize_t)sizeof count || errno == EAGAIN);
  return chain_reverse(atomic_exchange_explicit(&outbox->head, NULL, memory_order_acquire));
}
