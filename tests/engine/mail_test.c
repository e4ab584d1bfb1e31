/* The outbox: order, wake-ups, and many puts from another thread; pushes carry their reason with them. */
#include "engine/mail.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static bool readable(const struct outbox *outbox, int timeout_ms) {
  struct pollfd fd = {.fd = outbox->event_fd, .events = POLLIN};
  return poll(&fd, 1, timeout_ms) == 1;
}

/* Puts pushes with the sessions first … first + count - 1 as one chain. */
static void put_chain(struct outbox *outbox, uint64_t first, unsigned count) {
  struct mail *oldest = NULL, *newest = NULL;
  for (unsigned i = 0; i < count; i++) {
    struct push *push = push_new(MAIL_ENDED, first + i, (struct bytes){NULL, 0});
    if (newest == NULL) oldest = &push->mail;
    else newest->next = &push->mail;
    newest = &push->mail;
  }
  outbox_put(outbox, oldest, newest);
}

/* Takes all; asserts that the sessions run on from *next; returns how many came. */
static unsigned take_all(struct outbox *outbox, uint64_t *next) {
  unsigned count = 0;
  for (struct mail *mail = outbox_take(outbox); mail != NULL;) {
    struct push *push = (struct push *)mail;
    mail = mail->next;
    assert_int_equal(push->session, *next);
    *next += 1;
    count++;
    push_free(push);
  }
  return count;
}

static void an_empty_outbox_is_silent(void **state) {
  (void)state;
  struct outbox outbox;
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  assert_false(readable(&outbox, 0));
  assert_null(outbox_take(&outbox));
  outbox_clear(&outbox);
  assert_int_equal(outbox.event_fd, -1);
}

static void mail_comes_oldest_first_with_one_wake_up(void **state) {
  (void)state;
  static const unsigned chains[][4] = {{1}, {2}, {1, 1}, {3, 2}, {1, 5, 1, 2}};
  for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
    struct outbox outbox;
    assert_int_equal(outbox_init(&outbox), STATUS_OK);
    unsigned total = 0;
    for (unsigned j = 0; j < 4 && chains[i][j] > 0; j++) {
      put_chain(&outbox, total, chains[i][j]);
      total += chains[i][j];
    }
    assert_true(readable(&outbox, 0));
    uint64_t next = 0;
    assert_int_equal(take_all(&outbox, &next), total);
    assert_false(readable(&outbox, 0));
    assert_null(outbox_take(&outbox));
    put_chain(&outbox, total, 1);
    assert_true(readable(&outbox, 0));
    assert_int_equal(take_all(&outbox, &next), 1);
    outbox_clear(&outbox);
  }
}

static void clearing_frees_pushes_that_nobody_took(void **state) {
  (void)state;
  struct outbox outbox;
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  put_chain(&outbox, 0, 3); /* the sanitizer tells if they leak */
  outbox_clear(&outbox);
  assert_null(atomic_load(&outbox.head));
}

static void a_push_owns_its_reason(void **state) {
  (void)state;
  char text[] = "moved to another queue";
  struct push *push = push_new(MAIL_CANCEL, 7, bytes_text(text));
  memset(text, 'x', sizeof text - 1);
  assert_int_equal(push->mail.kind, MAIL_CANCEL);
  assert_int_equal(push->session, 7);
  assert_true(bytes_equal_text(push->reason, "moved to another queue"));
  assert_int_equal(push->weight, 0);
  push_free(push);
  push = push_new(MAIL_DRAINED, 8, (struct bytes){NULL, 0});
  assert_null(push->reason.data);
  push_free(push);
  push_free(NULL);
}

enum { many = 20000, chain = 7 };

static void *put_many(void *context) {
  struct outbox *outbox = context;
  for (unsigned i = 0; i < many; i++) put_chain(outbox, (uint64_t)i * chain, chain);
  return NULL;
}

static void nothing_is_lost_between_threads(void **state) {
  (void)state;
  struct outbox outbox;
  assert_int_equal(outbox_init(&outbox), STATUS_OK);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, put_many, &outbox), 0);
  uint64_t next = 0;
  while (next < (uint64_t)many * chain) {
    assert_true(readable(&outbox, 10000)); /* a lost wake-up would end here */
    (void)take_all(&outbox, &next);
  }
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_null(outbox_take(&outbox));
  outbox_clear(&outbox);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_outbox_is_silent),
      cmocka_unit_test(mail_comes_oldest_first_with_one_wake_up),
      cmocka_unit_test(clearing_frees_pushes_that_nobody_took),
      cmocka_unit_test(a_push_owns_its_reason),
      cmocka_unit_test(nothing_is_lost_between_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
