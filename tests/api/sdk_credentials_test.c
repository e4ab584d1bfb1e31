/* The addresses and the credentials files that liborbit takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../sdk/c/src/url.h"
#include "orbit.h"
#include "support/support.h"

/* ---- Addresses ---- */

static void addresses(void **state) {
  static const struct {
    const char *text, *authority; /* NULL: refused */
    const char *path;
    bool tls, websocket;
  } cases[] = {
      {"http://127.0.0.1:8080", "127.0.0.1:8080", "/", false, false},
      {"http://127.0.0.1:8080/", "127.0.0.1:8080", "/", false, false},
      {"https://orbit.example", "orbit.example:443", "/", true, false},
      {"HTTP://orbit.example", "orbit.example:80", "/", false, false},
      {"ws://h:1/v1/worker", "h:1", "/v1/worker", false, true},
      {"wss://[::1]:9/v1/worker/", "[::1]:9", "/v1/worker", true, true},
      {"ws://[2001:db8::1]", "[2001:db8::1]:80", "/", false, true},
      {"http://a_b-c.d:65535", "a_b-c.d:65535", "/", false, false},
      {"", NULL, "", false, false},
      {"127.0.0.1:8080", NULL, "", false, false},
      {"ftp://h", NULL, "", false, false},
      {"http://", NULL, "", false, false},
      {"http:///x", NULL, "", false, false},
      {"http://h:", NULL, "", false, false},
      {"http://h:0", NULL, "", false, false},
      {"http://h:65536", NULL, "", false, false},
      {"http://h:8x", NULL, "", false, false},
      {"http://u@h", NULL, "", false, false},
      {"http://h?x", NULL, "", false, false},
      {"http://h/x?y", NULL, "", false, false},
      {"http://h/x#y", NULL, "", false, false},
      {"http://h/x y", NULL, "", false, false},
      {"http://h\r\nX: y", NULL, "", false, false},
      {"http://[::1", NULL, "", false, false},
      {"http://[::1]x", NULL, "", false, false},
      {"http://[h]", NULL, "", false, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct sdk_url url;
    bool good = sdk_url_parse(cases[i].text, &url);
    assert_int_equal(good, cases[i].authority != NULL);
    if (!good) continue;
    char authority[url_authority_bytes];
    sdk_url_authority(&url, authority);
    assert_string_equal(authority, cases[i].authority);
    assert_string_equal(url.path, cases[i].path);
    assert_int_equal(url.tls, cases[i].tls);
    assert_int_equal(url.websocket, cases[i].websocket);
  }
  struct sdk_url url;
  assert_true(sdk_url_parse("ws://0.0.0.0:1", &url) && sdk_url_is_wildcard(&url));
  assert_true(sdk_url_parse("ws://[::]:1", &url) && sdk_url_is_wildcard(&url));
  assert_true(sdk_url_parse("ws://[::1]:1", &url) && !sdk_url_is_wildcard(&url));
  assert_true(sdk_url_parse("ws://10.0.0.0:1", &url) && !sdk_url_is_wildcard(&url));
}

/* ---- Credentials ---- */

static void file_write(const char *path, const char *text, mode_t mode) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static void credentials_files(void **state) {
  static const struct {
    const char *text, *url_variable;
    int status;
    const char *field, *url;
  } cases[] = {
      {"{\"url\":\"http://h:1\",\"namespace_id\":\"n\",\"application_id\":\"a\",\"queue_id\":\"q\",\"token\":\"t\"}", NULL,
       ORBIT_OK, "", "http://h:1"},
      {"{\"url\":\"http://h:1\",\"token\":\"t\",\"later\":[1]}", "http://other:2", ORBIT_OK, "", "http://other:2"},
      {"{\"url\":\"http://h:1\",\"token\":\"t\"}", "", ORBIT_OK, "", "http://h:1"},
      {"{\"token\":\"t\"}", "https://other", ORBIT_OK, "", "https://other"},
      {"{\"token\":\"t\"}", NULL, ORBIT_INVALID_ARGUMENT, "/url", ""},
      {"{\"url\":\"http://h:1\"}", NULL, ORBIT_INVALID_ARGUMENT, "/token", ""},
      {"{\"url\":\"http://h:1\",\"token\":\"\"}", NULL, ORBIT_INVALID_ARGUMENT, "/token", ""},
      {"{\"url\":\"http://h:1\",\"token\":\"a b\"}", NULL, ORBIT_INVALID_ARGUMENT, "/token", ""},
      {"{\"url\":\"http://h:1\",\"token\":7}", NULL, ORBIT_INVALID_ARGUMENT, "", ""},
      {"{\"url\":\"ws://h:1\",\"token\":\"t\"}", NULL, ORBIT_INVALID_ARGUMENT, "/url", ""},
      {"{\"url\":\"http://h:1\",\"token\":\"t\"}", "nonsense", ORBIT_INVALID_ARGUMENT, "ORBIT_URL", ""},
      {"[]", NULL, ORBIT_INVALID_ARGUMENT, "", ""},
      {"", NULL, ORBIT_INVALID_ARGUMENT, "", ""},
      {"{\"token\":\"a\",\"token\":\"b\"}", NULL, ORBIT_INVALID_ARGUMENT, "/token", ""},
  };
  (void)state;
  char *directory = test_directory_make(), path[512];
  (void)snprintf(path, sizeof path, "%s/credentials.json", directory);
  (void)setenv("ORBIT_CREDENTIALS_FILE", path, 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct orbit_credentials *credentials = NULL;
    struct orbit_error error = {.status = 0};
    file_write(path, cases[i].text, 0600);
    if (cases[i].url_variable != NULL) (void)setenv("ORBIT_URL", cases[i].url_variable, 1);
    int status = orbit_credentials_load(i % 2 == 0 ? NULL : path, &credentials, &error);
    (void)unsetenv("ORBIT_URL");
    assert_int_equal(status, cases[i].status);
    assert_int_equal(error.status, cases[i].status);
    assert_string_equal(error.field, cases[i].field);
    if (status != ORBIT_OK) {
      assert_null(credentials);
      continue;
    }
    assert_string_equal(credentials->url, cases[i].url);
    assert_string_equal(credentials->token, "t");
    assert_string_equal(credentials->path, path);
    assert_string_equal(credentials->queue_id, i == 0 ? "q" : "");
    assert_false(credentials->exposed);
    orbit_credentials_free(credentials);
  }
  (void)unsetenv("ORBIT_CREDENTIALS_FILE");
  test_directory_remove(directory);
}

static void credentials_are_found_where_the_environment_says(void **state) {
  (void)state;
  char *directory = test_directory_make(), path[512];
  (void)snprintf(path, sizeof path, "%s/orbit", directory);
  assert_int_equal(mkdir(path, 0700), 0);
  (void)snprintf(path, sizeof path, "%s/orbit/credentials.json", directory);
  file_write(path, "{\"url\":\"http://h:1\",\"token\":\"t\"}", 0640);
  (void)unsetenv("ORBIT_CREDENTIALS_FILE");
  (void)setenv("XDG_CONFIG_HOME", directory, 1);
  struct orbit_credentials *credentials = NULL;
  assert_int_equal(orbit_credentials_load(NULL, &credentials, NULL), ORBIT_OK);
  assert_string_equal(credentials->path, path);
  assert_true(credentials->exposed);
  orbit_credentials_free(credentials);

  (void)setenv("XDG_CONFIG_HOME", "/nowhere", 1);
  struct orbit_error error;
  assert_int_equal(orbit_credentials_load(NULL, &credentials, &error), ORBIT_IO_ERROR);
  assert_non_null(strstr(error.message, "/nowhere/orbit/credentials.json"));
  assert_int_equal(orbit_credentials_load(directory, &credentials, &error), ORBIT_IO_ERROR);
  (void)unsetenv("XDG_CONFIG_HOME");
  test_directory_remove(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses),
      cmocka_unit_test(credentials_files),
      cmocka_unit_test(credentials_are_found_where_the_environment_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
