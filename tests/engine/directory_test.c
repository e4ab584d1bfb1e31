/* Who is let in: tokens by their hash, and every way in which a credential ends. */
#include <stdio.h>
#include <string.h>

#include "codec/digest.h"
#include "engine/directory.h"
#include "support/support.h"

static const int64_t now_us = INT64_C(1800000000000000);

static struct id number_id(unsigned number) {
  struct id id = {{1}};
  id.bytes[14] = (uint8_t)(number >> 8);
  id.bytes[15] = (uint8_t)number;
  return id;
}

static struct credential credential_make(unsigned number, const char *token) {
  struct credential credential = {.id = number_id(number),
                                  .namespace_id = number_id(1000),
                                  .application_id = number_id(2000),
                                  .permissions = UINT64_C(1) << PERMISSION_QUEUES_MANAGE,
                                  .revision = 1};
  token_hash(bytes_text(token), credential.token_hash);
  return credential;
}

static enum status ask(struct directory *directory, const char *token, int64_t time_us, struct principal *ret_principal) {
  struct fault fault = {.status = STATUS_OK};
  enum status status = directory_authenticate(directory, bytes_text(token), time_us, ret_principal, &fault);
  assert_int_equal(fault.status, status);
  if (status != STATUS_OK) assert_null(strstr(fault.message, token));
  return status;
}

static void test_known(void **state) {
  struct directory *directory = directory_new();
  struct credential credential = credential_make(1, "token-a");
  struct principal who;
  (void)state;
  directory_put(directory, &credential, false);
  assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_OK);
  assert_true(id_equal(&who.credential_id, &credential.id));
  assert_true(id_equal(&who.namespace_id, &credential.namespace_id));
  assert_true(id_equal(&who.application_id, &credential.application_id));
  assert_int_equal(who.permissions, permissions_expand(credential.permissions));
  assert_true((who.permissions >> PERMISSION_QUEUES_READ & 1) != 0); /* implied */
  assert_int_equal(who.credential_revision, 1);
  assert_int_equal(directory_check(directory, &who, now_us), STATUS_OK);
  directory_free(directory);
}

static void test_unknown(void **state) {
  struct directory *directory = directory_new();
  struct credential credential = credential_make(1, "token-a");
  struct principal who = {.permissions = 77};
  struct fault fault;
  struct principal other = {.credential_id = number_id(2), .credential_revision = 1};
  (void)state;
  directory_put(directory, &credential, false);
  assert_int_equal(ask(directory, "token-b", now_us, &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(ask(directory, "token-", now_us, &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(ask(directory, "token-aa", now_us, &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_authenticate(directory, bytes_of("", 0), now_us, &who, &fault), STATUS_UNAUTHENTICATED);
  static const char huge[4096] = {'x'};
  assert_int_equal(directory_authenticate(directory, bytes_of(huge, sizeof huge), now_us, &who, &fault),
                   STATUS_UNAUTHENTICATED);
  assert_int_equal(who.permissions, 77); /* untouched */
  assert_int_equal(directory_check(directory, &other, now_us), STATUS_UNAUTHENTICATED);
  directory_free(directory);
}

static void test_expiry(void **state) {
  struct directory *directory = directory_new();
  struct credential credential = credential_make(1, "token-a");
  struct principal who;
  (void)state;
  credential.expires_at = now_us;
  directory_put(directory, &credential, false);
  assert_int_equal(ask(directory, "token-a", now_us - 1, &who), STATUS_OK);
  assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_check(directory, &who, now_us - 1), STATUS_OK);
  assert_int_equal(directory_check(directory, &who, now_us), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_generation(directory), 0); /* time is no event */
  directory_free(directory);
}

static void test_endings(void **state) {
  (void)state;
  for (int disabled = 0; disabled < 2; disabled++) {
    struct directory *directory = directory_new();
    struct credential credential = credential_make(1, "token-a");
    struct principal who;
    directory_put(directory, &credential, false);
    assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_OK);
    assert_int_equal(directory_generation(directory), 0);
    credential.revoked = disabled == 0;
    credential.revision += disabled == 0; /* a revocation is the credential's own event, the other is its application's */
    directory_put(directory, &credential, disabled != 0);
    assert_int_equal(directory_check(directory, &who, now_us), STATUS_UNAUTHENTICATED);
    assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_UNAUTHENTICATED);
    assert_int_equal(directory_generation(directory), 1);
    directory_put(directory, &credential, disabled != 0); /* again: nothing ends */
    assert_int_equal(directory_generation(directory), 1);
    credential.revoked = false;
    directory_put(directory, &credential, false); /* the application is enabled again */
    assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_OK);
    directory_free(directory);
  }
}

static void test_rotation(void **state) {
  struct directory *directory = directory_new();
  struct credential credential = credential_make(1, "token-a");
  struct principal who;
  (void)state;
  directory_put(directory, &credential, false);
  assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_OK);
  struct principal old = who;
  directory_put(directory, &credential, false); /* published again as it is: nobody is hindered */
  assert_int_equal(directory_generation(directory), 0);
  assert_int_equal(directory_check(directory, &old, now_us), STATUS_OK);
  credential = credential_make(1, "token-b");
  credential.revision = 2;
  directory_put(directory, &credential, false);
  assert_int_equal(directory_generation(directory), 1);
  assert_int_equal(ask(directory, "token-a", now_us, &who), STATUS_UNAUTHENTICATED);
  assert_int_equal(directory_check(directory, &old, now_us), STATUS_UNAUTHENTICATED); /* who came in by the old token goes */
  assert_int_equal(ask(directory, "token-b", now_us, &who), STATUS_OK);
  assert_int_equal(who.credential_revision, 2);
  assert_int_equal(directory_check(directory, &who, now_us), STATUS_OK);
  directory_free(directory);
}

static void test_many(void **state) {
  enum { many = 1000 };
  struct directory *directory = directory_new();
  struct principal who;
  char token[32];
  (void)state;
  for (unsigned i = 0; i < many; i++) {
    (void)snprintf(token, sizeof token, "token-%u", i);
    struct credential credential = credential_make(i, token);
    directory_put(directory, &credential, false);
  }
  for (unsigned i = 0; i < many; i++) {
    (void)snprintf(token, sizeof token, "token-%u", i);
    struct id id = number_id(i);
    assert_int_equal(ask(directory, token, now_us, &who), STATUS_OK);
    assert_true(id_equal(&who.credential_id, &id));
    assert_int_equal(directory_check(directory, &who, now_us), STATUS_OK);
  }
  directory_free(directory);
}

/* Places are the credential's, whatever its token is, and each is there again once it is left. */
static void test_places(void **state) {
  struct directory *directory = directory_new();
  struct credential one = credential_make(1, "one"), other = credential_make(2, "other");
  struct principal who, neighbour, stranger = {.credential_id = number_id(3)};
  struct directory_place *places[3] = {NULL};
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  directory_put(directory, &one, false);
  directory_put(directory, &other, false);
  assert_int_equal(ask(directory, "one", now_us, &who), STATUS_OK);
  assert_int_equal(ask(directory, "other", now_us, &neighbour), STATUS_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(directory_enter(directory, &who, 2, &places[i], &fault), STATUS_OK);
  one.revision++;
  token_hash(bytes_text("new"), one.token_hash);
  directory_put(directory, &one, false);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(directory_enter(directory, &who, 2, &places[2], &fault), STATUS_RATE_LIMITED);
    assert_null(places[2]);
    assert_int_equal(fault.retry_after_ms, crowded_retry_ms);
  }
  assert_int_equal(directory_enter(directory, &neighbour, 1, &places[2], &fault), STATUS_OK);
  directory_leave(places[2]);
  assert_int_equal(directory_enter(directory, &who, 3, &places[2], &fault), STATUS_OK);
  directory_leave(places[2]);
  directory_leave(places[0]);
  assert_int_equal(directory_enter(directory, &who, 2, &places[0], &fault), STATUS_OK);
  assert_int_equal(directory_enter(directory, &who, 0, &places[2], &fault), STATUS_OK); /* no limit */
  for (int i = 0; i < 3; i++) directory_leave(places[i]);
  directory_leave(NULL);
  assert_int_equal(directory_enter(directory, &stranger, 2, &places[2], &fault), STATUS_UNAUTHENTICATED);
  directory_free(directory);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),   cmocka_unit_test(test_unknown),  cmocka_unit_test(test_expiry),
      cmocka_unit_test(test_endings), cmocka_unit_test(test_rotation), cmocka_unit_test(test_many),
      cmocka_unit_test(test_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
