/* Owns the mailbox. */
#include "engine/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"

enum status mailbox_init(struct mailbox *mailbox) {
  atomic_init(&mailbox->head, NULL);
  atomic_init(&mailbox->count, 0);
  atomic_init(&mailbox->wanted, 0);
  mailbox->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return mailbox->event_fd >= 0 ? STATUS_OK : STATUS_IO_ERROR;
}

void mailbox_clear(struct mailbox *mailbox) {
  if (mailbox->event_fd >= 0) (void)close(mailbox->event_fd);
  mailbox->event_fd = -1;
}

void mailbox_wake(struct mailbox *mailbox) {
  uint64_t one = 1;
  while (write(mailbox->event_fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

/* One ring is enough, whoever comes behind. */
bool mailbox_put(struct mailbox *mailbox, struct ticket *ticket, bool force) {
  uint32_t before = atomic_fetch_add(&mailbox->count, 1);
  if (before >= mailbox_tickets_max && !force) {
    atomic_fetch_sub(&mailbox->count, 1);
    return false;
  }
  struct mail *head = atomic_load(&mailbox->head);
  do ticket->mail.next = head;
  while (!atomic_compare_exchange_weak(&mailbox->head, &head, &ticket->mail));
  uint32_t wanted = atomic_load(&mailbox->wanted);
  if (wanted != 0 && before + 1 >= wanted && atomic_exchange(&mailbox->wanted, 0) != 0) mailbox_wake(mailbox);
  return true;
}

struct mail *mailbox_take(struct mailbox *mailbox) {
  struct mail *newest = atomic_exchange(&mailbox->head, NULL), *oldest = NULL;
  while (newest != NULL) {
    struct mail *next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

void mailbox_done(struct mailbox *mailbox, uint32_t count) { atomic_fetch_sub(&mailbox->count, count); }

/* Whoever puts the last one that is wanted is seen here, or sees what is wanted. */
void mailbox_wait(struct mailbox *mailbox, uint32_t wanted, int64_t timeout_us) {
  struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
  struct pollfd wait = {mailbox->event_fd, POLLIN, 0};
  uint64_t count;
  atomic_store(&mailbox->wanted, wanted);
  bool enough = wanted == 1 ? atomic_load(&mailbox->head) != NULL : atomic_load(&mailbox->count) >= wanted;
  if (!enough) (void)ppoll(&wait, 1, timeout_us >= 0 ? &timeout : NULL, NULL);
  atomic_store(&mailbox->wanted, 0);
  while (read(mailbox->event_fd, &count, sizeof count) < 0 && errno == EINTR) continue;
}
