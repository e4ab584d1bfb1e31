/* Owns credentials files: finding them and reading them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "sdk.h"
#include "url.h"
#include "view.h"

enum { credentials_bytes_max = 64 * 1024, path_bytes_max = 4096, token_chars_max = 4096 };

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Where the credentials are when nobody says so. */
static int default_path(struct buffer *path, struct orbit_error *error) {
  const char *given = environment("ORBIT_CREDENTIALS_FILE");
  const char *configuration = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
  if (given != NULL) {
    buffer_append_text(path, given);
  } else if (configuration != NULL) {
    buffer_append_format(path, "%s/orbit/credentials.json", configuration);
  } else if (home != NULL) {
    buffer_append_format(path, "%s/.config/orbit/credentials.json", home);
  } else {
    return sdk_fail(error, ORBIT_IO_ERROR, NULL,
                    "no credentials file: ORBIT_CREDENTIALS_FILE, XDG_CONFIG_HOME and HOME are not set");
  }
  buffer_append_char(path, '\0');
  return path->failed ? sdk_fail(error, ORBIT_IO_ERROR, NULL, "the path of the credentials file is too long") : ORBIT_OK;
}

static int file_read(const char *path, struct buffer *text, bool *ret_exposed, struct orbit_error *error) {
  cleanup(guard_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    return sdk_fail(error, ORBIT_IO_ERROR, NULL, "the credentials file %s cannot be opened: %s", path, strerror(errno));
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return sdk_fail(error, ORBIT_IO_ERROR, NULL, "the credentials file %s is not a file", path);
  }
  for (;;) {
    uint8_t *room = buffer_reserve(text, 4096);
    if (room == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "%s is too large for a credentials file", path);
    ssize_t got = read(fd, room, 4096);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sdk_fail(error, ORBIT_IO_ERROR, NULL, "%s cannot be read: %s", path, strerror(errno));
    if (got == 0) break;
    buffer_commit(text, (size_t)got);
  }
  *ret_exposed = S_ISREG(status.st_mode) && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  return ORBIT_OK;
}

static const char *text_or_empty(struct sdk_view *view, const char *name) {
  const char *text = sdk_view_text(view, name);
  return text != NULL ? text : "";
}

static int object_read(struct json *json, struct orbit_credentials *credentials, struct orbit_error *error) {
  struct sdk_arena *arena = sdk_result_arena(credentials);
  struct sdk_view view = {.json = json, .arena = arena};
  const char *path = credentials->path;
  if (json->tokens[0].type != JSON_OBJECT) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "", "%s does not hold a JSON object", path);
  }
  const char *url = environment("ORBIT_URL");
  credentials->url = url != NULL ? sdk_arena_string(arena, url) : text_or_empty(&view, "url");
  credentials->namespace_id = text_or_empty(&view, "namespace_id");
  credentials->application_id = text_or_empty(&view, "application_id");
  credentials->queue_id = text_or_empty(&view, "queue_id");
  credentials->token = text_or_empty(&view, "token");
  if (arena->failed) return sdk_no_memory(error);
  struct sdk_url parsed;
  if (view.bad) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "", "%s: a field that should be a text is none", path);
  if (credentials->url[0] == '\0') {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/url", "%s has no url, and ORBIT_URL is not set", path);
  }
  if (!sdk_url_parse(credentials->url, &parsed) || parsed.websocket) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, url != NULL ? "ORBIT_URL" : "/url",
                    "the url must be http://host:port or https://host:port");
  }
  if (!sdk_is_visible_ascii(credentials->token, token_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "/token", "%s has no token", path);
  }
  return ORBIT_OK;
}

int orbit_credentials_load(const char *path, struct orbit_credentials **ret_credentials, struct orbit_error *error) {
  cleanup(buffer_clear) struct buffer path_text, text;
  cleanup(json_clear) struct json json;
  buffer_init(&path_text, path_bytes_max);
  buffer_init(&text, credentials_bytes_max);
  json_init(&json);
  if (path == NULL) {
    int found = default_path(&path_text, error);
    if (found != ORBIT_OK) return found;
    path = (const char *)path_text.data;
  }
  struct orbit_credentials *credentials = sdk_result_new(sizeof *credentials);
  if (credentials == NULL) return sdk_no_memory(error);
  credentials->path = sdk_arena_string(sdk_result_arena(credentials), path);
  credentials->token = "";
  struct fault fault = {.status = STATUS_OK};
  int status = credentials->path != NULL ? file_read(path, &text, &credentials->exposed, error) : sdk_no_memory(error);
  if (status == ORBIT_OK && json_parse(&json, buffer_bytes(&text), &fault) != STATUS_OK) {
    status = sdk_fail(error, ORBIT_INVALID_ARGUMENT, fault.field, "%s: %s", path, fault.message);
  }
  if (status == ORBIT_OK) status = object_read(&json, credentials, error);
  if (text.data != NULL) sdk_wipe(text.data, text.size);
  if (status != ORBIT_OK) {
    orbit_credentials_free(credentials);
    return status;
  }
  *ret_credentials = credentials;
  return ORBIT_OK;
}

void orbit_credentials_free(struct orbit_credentials *credentials) {
  if (credentials == NULL) return;
  /* The token is a copy in the result's own arena, or the empty literal. */
  size_t size = credentials->token != NULL ? strlen(credentials->token) : 0;
  if (size > 0) sdk_wipe((void *)(uintptr_t)credentials->token, size);
  sdk_result_free(credentials);
}
