/* Judging headers: framing that a proxy might read otherwise, and what a read and a write must carry. */
#include <string.h>

#include "base/limits.h"
#include "edge/http_head.h"
#include "support/support.h"

/* Lines "Name: value" parted by \n. */
static void read_head(const char *lines, struct head *head, char *copy, size_t size) {
  assert_true(strlen(lines) < size);
  memcpy(copy, lines, strlen(lines) + 1);
  head_init(head);
  for (char *line = copy; line != NULL && *line != '\0';) {
    char *next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    char *colon = strstr(line, ": ");
    assert_non_null(colon);
    *colon = '\0';
    head_add(head, bytes_text(line), bytes_text(colon + 2));
    line = next;
  }
}

static void test_framing(void **state) {
  static const struct {
    const char *lines;
    bool http_1_1;
    enum status status;
    const char *field;
  } cases[] = {
      {"Host: a", true, STATUS_OK, ""},
      {"Host: a\nContent-Length: 5", true, STATUS_OK, ""},
      {"Host: a\nTransfer-Encoding: chunked", true, STATUS_OK, ""},
      {"host: a\ntransfer-encoding: CHUNKED", true, STATUS_OK, ""},
      {"Content-Length: 5", false, STATUS_OK, ""},
      {"Transfer-Encoding: chunked\nContent-Length: 5", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Content-Length: 5\nTransfer-Encoding: chunked", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Content-Length: 5\nContent-Length: 5", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: 5\ncontent-length: 6", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: 5, 5", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: +5", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: -5", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: 0x5", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: ", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Content-Length: 18446744073709551616", true, STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Transfer-Encoding: chunked\nTransfer-Encoding: chunked", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: chunked\nTransfer-Encoding: identity", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: gzip, chunked", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: identity", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: xchunked", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: chunked", false, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding: ", true, STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
      {"Transfer-Encoding : chunked", true, STATUS_INVALID_ARGUMENT, ""},
      {"Transfer\tEncoding: chunked", true, STATUS_INVALID_ARGUMENT, ""},
      {"Transfer-Encoding: \vchunked", true, STATUS_INVALID_ARGUMENT, ""},
      {"", true, STATUS_INVALID_ARGUMENT, "Host"},
      {"", false, STATUS_OK, ""},
      {"Host: a\nHost: a", true, STATUS_INVALID_ARGUMENT, "Host"},
      {"Host: a\nhost: b", true, STATUS_INVALID_ARGUMENT, "Host"},
      {": a", true, STATUS_INVALID_ARGUMENT, ""},
      {"X(: a", true, STATUS_INVALID_ARGUMENT, ""},
      {"X: a\rb", true, STATUS_INVALID_ARGUMENT, ""},
      {"Host: a\nX: \xC3\xA9\tb", true, STATUS_OK, ""},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct head head;
    char copy[256];
    struct fault fault = {.status = STATUS_OK};
    read_head(cases[i].lines, &head, copy, sizeof copy);
    assert_int_equal(head_judge_framing(&head, cases[i].http_1_1, &fault), cases[i].status);
    assert_string_equal(fault.field, cases[i].field);
  }
}

/* Each byte in a name and in a value. A NUL ends both before they come here. */
static void test_bytes_of_names_and_values(void **state) {
  static const char marks[] = "!#$%&'*+-.^_`|~";
  (void)state;
  for (unsigned c = 1; c < 256; c++) {
    const char byte[] = {(char)c, '\0'}, name[] = {'X', '-', (char)c, 'y', '\0'}, value[] = {'1', '2', (char)c, '\0'};
    struct head head;
    bool token = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strstr(marks, byte) != NULL;
    head_init(&head);
    head_add(&head, bytes_text(name), bytes_text("v"));
    if (head.malformed == token) fail_msg("byte %u of a name", c);
    head_init(&head);
    head_add(&head, bytes_text("X-Long-Enough-To-Be-Seen"), bytes_text(value));
    if (head.malformed != ((c < ' ' && c != '\t') || c == 0x7F)) fail_msg("byte %u of a value", c);
  }
}

static void test_header_bytes(void **state) {
  static char value[http_header_bytes_max];
  struct head head;
  struct fault fault;
  (void)state;
  memset(value, 'x', sizeof value - 1);
  head_init(&head);
  head.hosts = 1;
  head_add(&head, bytes_text("X"), bytes_of(value, http_header_bytes_max - 5));
  assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
  head_init(&head);
  head.hosts = 1;
  head_add(&head, bytes_text("X"), bytes_of(value, http_header_bytes_max - 4));
  assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_HEADERS_TOO_LARGE);
}

static void test_accept(void **state) {
  static const struct {
    const char *lines;
    enum status status;
  } cases[] = {
      {"", STATUS_OK},
      {"Accept: */*", STATUS_OK},
      {"Accept: application/json", STATUS_OK},
      {"Accept: Application/JSON; charset=utf-8", STATUS_OK},
      {"Accept: application/*;q=0.1", STATUS_OK},
      {"Accept: text/html, application/json;q=0.9", STATUS_OK},
      {"Accept: text/html, */*;q=0.1", STATUS_OK},
      {"Accept: text/html\nAccept: application/json", STATUS_OK},
      {"Accept: */*;q=0, application/json", STATUS_OK},
      {"Accept: text/html;x=\",application/xml;\", */*", STATUS_OK},
      {"Accept: text/html", STATUS_NOT_ACCEPTABLE},
      {"Accept: application/xml", STATUS_NOT_ACCEPTABLE},
      {"Accept: application/jsonp", STATUS_NOT_ACCEPTABLE},
      {"Accept: ", STATUS_NOT_ACCEPTABLE},
      {"Accept: application/json;q=0", STATUS_NOT_ACCEPTABLE},
      {"Accept: application/json;q=0.000, */*", STATUS_NOT_ACCEPTABLE},
      {"Accept: application/*;q=0, */*", STATUS_NOT_ACCEPTABLE},
      {"Accept: text/html;x=\",application/json\"", STATUS_NOT_ACCEPTABLE},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct head head;
    char copy[256];
    struct fault fault;
    read_head(cases[i].lines, &head, copy, sizeof copy);
    assert_int_equal(head_judge_accept(&head, &fault), cases[i].status);
  }
}

static void test_reads(void **state) {
  static const struct {
    const char *lines;
    enum status status;
    const char *field;
  } cases[] = {
      {"", STATUS_OK, ""},
      {"Content-Length: 0", STATUS_OK, ""},
      {"Content-Type: text/plain", STATUS_OK, ""},
      {"Idempotency-Key: a", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {"Idempotency-Key: ", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {"Content-Length: 1", STATUS_INVALID_ARGUMENT, "Content-Length"},
      {"Transfer-Encoding: chunked", STATUS_INVALID_ARGUMENT, "Transfer-Encoding"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct head head;
    char copy[256];
    struct fault fault = {.status = STATUS_OK};
    read_head(cases[i].lines, &head, copy, sizeof copy);
    head.hosts = 1;
    assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
    assert_int_equal(head_judge_read(&head, &fault), cases[i].status);
    assert_string_equal(fault.field, cases[i].field);
  }
}

#define TYPE "Content-Type: application/json\n"
#define KEY "Idempotency-Key: a\n"
#define KEY_32 "0123456789abcdef0123456789ABCDE~"
#define KEY_128 KEY_32 KEY_32 KEY_32 KEY_32

static void test_writes(void **state) {
  static const struct {
    const char *lines;
    enum status status;
    const char *field;
  } cases[] = {
      {TYPE KEY "Content-Length: 2", STATUS_OK, ""},
      {TYPE KEY "Content-Length: 100", STATUS_OK, ""},
      {TYPE KEY "Content-Length: 101", STATUS_PAYLOAD_TOO_LARGE, "Content-Length"},
      {TYPE KEY "Content-Length: 18446744073709551615", STATUS_PAYLOAD_TOO_LARGE, "Content-Length"},
      {TYPE KEY "Transfer-Encoding: chunked", STATUS_OK, ""},
      {TYPE KEY "X: y", STATUS_LENGTH_REQUIRED, "Content-Length"},
      {KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type"},
      {TYPE TYPE KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type"},
      {"Content-Type: text/plain\n" KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type"},
      {"Content-Type: application/jsonx\n" KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type"},
      {"Content-Type: application/json; charset=utf-8\n" KEY "Content-Length: 2", STATUS_OK, ""},
      {"Content-Type: APPLICATION/JSON ;charset=\"UTF-8\"\n" KEY "Content-Length: 2", STATUS_OK, ""},
      {"Content-Type: application/json; charset=latin1\n" KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE,
       "Content-Type"},
      {"Content-Type: application/json; profile=x\n" KEY "Content-Length: 2", STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Type"},
      {TYPE "Content-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {TYPE KEY KEY "Content-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {TYPE "Idempotency-Key: \nContent-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {TYPE "Idempotency-Key: a b\nContent-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {TYPE "Idempotency-Key: \xC3\xA9\nContent-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
      {TYPE "Idempotency-Key: " KEY_128 "\nContent-Length: 2", STATUS_OK, ""},
      {TYPE "Idempotency-Key: " KEY_128 "x\nContent-Length: 2", STATUS_INVALID_ARGUMENT, "Idempotency-Key"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct head head;
    char copy[512];
    struct fault fault = {.status = STATUS_OK};
    read_head(cases[i].lines, &head, copy, sizeof copy);
    head.hosts = 1;
    assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
    assert_int_equal(head_judge_write(&head, 100, true, &fault), cases[i].status);
    assert_string_equal(fault.field, cases[i].field);
  }
}

static void test_keyless_write(void **state) {
  struct head head;
  char copy[256];
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  read_head(TYPE "Content-Length: 2", &head, copy, sizeof copy);
  head.hosts = 1;
  assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
  assert_int_equal(head_judge_write(&head, 100, false, &fault), STATUS_OK);
  read_head(TYPE KEY "Content-Length: 2", &head, copy, sizeof copy);
  head.hosts = 1;
  assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
  assert_int_equal(head_judge_write(&head, 100, false, &fault), STATUS_OK); /* not used, whatever it is */
  read_head(TYPE "Idempotency-Key: \n" KEY "Content-Length: 2", &head, copy, sizeof copy);
  head.hosts = 1;
  assert_int_equal(head_judge_framing(&head, true, &fault), STATUS_OK);
  assert_int_equal(head_judge_write(&head, 100, false, &fault), STATUS_OK);
}

static void test_authorization(void **state) {
  struct head head;
  char copy[256];
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  read_head("Authorization: Bearer x", &head, copy, sizeof copy);
  assert_int_equal(head_judge_authorization(&head, &fault), STATUS_OK);
  assert_string_equal(head.authorization, "Bearer x");
  read_head("Authorization: Bearer x\nauthorization: Bearer x", &head, copy, sizeof copy);
  assert_int_equal(head_judge_authorization(&head, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "Authorization");
}

static void test_retry_after(void **state) {
  static const struct {
    uint32_t delay_ms, seconds;
  } cases[] = {{0, 1}, {1, 1}, {100, 1}, {1000, 1}, {1001, 2}, {2000, 2}, {UINT32_MAX, 4294968}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(head_retry_after_s(cases[i].delay_ms), cases[i].seconds);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_framing),
      cmocka_unit_test(test_header_bytes),
      cmocka_unit_test(test_bytes_of_names_and_values),
      cmocka_unit_test(test_accept),
      cmocka_unit_test(test_reads),
      cmocka_unit_test(test_writes),
      cmocka_unit_test(test_keyless_write),
      cmocka_unit_test(test_authorization),
      cmocka_unit_test(test_retry_after),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
