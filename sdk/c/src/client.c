/* Owns clients: their options and a stack of idle connections, so that threads never wait for one another. */
#include "client.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/limits.h"
#include "url.h"

enum {
  connect_timeout_ms_default = 5000,
  timeout_ms_default = 35000,
  answer_bytes_max = 128 * 1024 * 1024,
  answer_bytes_kept = 1024 * 1024, /* a connection lets go of a larger buffer */
  idle_connections_max = 64,
  kept_alive_s_max = 20, /* shorter than the server's patience, so that a request rarely meets a closed connection */
};

struct sdk_connection {
  struct sdk_connection *next;
  CURL *curl;
  struct buffer body;
  struct json json;
  char request_id[64];
  uint32_t retry_after_s;
};

struct orbit_client {
  struct sdk_arena texts;
  const char *base; /* scheme://host:port and path prefix, no trailing "/" */
  const char *user_agent;
  const char *ca_file;
  char *authorization; /* "Authorization: Bearer …"; NULL: none */
  uint32_t connect_timeout_ms, timeout_ms;
  pthread_mutex_t lock; /* guards what follows */
  struct sdk_connection *idle;
  uint32_t idle_count;
  pid_t owner; /* the process whose connections the idle ones are */
};

/* ---- Making and freeing ---- */

static const char *base_make(struct sdk_arena *texts, const struct sdk_url *url) {
  char authority[url_authority_bytes];
  sdk_url_authority(url, authority);
  const char *scheme = url->tls ? "https://" : "http://", *path = strcmp(url->path, "/") == 0 ? "" : url->path;
  size_t size = strlen(scheme) + strlen(authority) + strlen(path) + 1;
  char *base = sdk_arena_alloc(texts, size);
  if (base != NULL) (void)snprintf(base, size, "%s%s%s", scheme, authority, path);
  return base;
}

static char *authorization_make(const char *token) {
  static const char prefix[] = "Authorization: Bearer ";
  size_t size = sizeof prefix + strlen(token);
  char *header = malloc(size);
  if (header != NULL) (void)snprintf(header, size, "%s%s", prefix, token);
  return header;
}

int orbit_client_new(const struct orbit_client_options *given, struct orbit_client **ret_client, struct orbit_error *error) {
  struct orbit_client_options options;
  struct sdk_url url;
  int status = sdk_options_copy(&options, sizeof options, given, error);
  if (status != ORBIT_OK) return status;
  if (!sdk_url_parse(options.url, &url) || url.websocket) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "url", "the url must be http://host:port or https://host:port");
  }
  if (options.token != NULL && !sdk_is_visible_ascii(options.token, 4096)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "token", "the token is empty, or has characters that no token has");
  }
  if (options.user_agent != NULL && !sdk_is_text(options.user_agent, 1, 256)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "user_agent", "the user agent is not a short text");
  }
  if (!sdk_global_init()) return sdk_fail(error, ORBIT_IO_ERROR, NULL, "libcurl or libsodium cannot be used");

  struct orbit_client *client = calloc(1, sizeof *client);
  if (client == NULL) return sdk_no_memory(error);
  client->connect_timeout_ms = options.connect_timeout_ms != 0 ? options.connect_timeout_ms : connect_timeout_ms_default;
  client->timeout_ms = options.timeout_ms != 0 ? options.timeout_ms : timeout_ms_default;
  client->base = base_make(&client->texts, &url);
  client->user_agent =
      sdk_arena_string(&client->texts, options.user_agent != NULL ? options.user_agent : "liborbit/" ORBIT_VERSION);
  client->ca_file = sdk_arena_string(&client->texts, sdk_ca_file(options.ca_file));
  if (options.token != NULL) client->authorization = authorization_make(options.token);
  (void)pthread_mutex_init(&client->lock, NULL);
  client->owner = getpid();
  if (client->texts.failed || (options.token != NULL && client->authorization == NULL)) {
    orbit_client_free(client);
    return sdk_no_memory(error);
  }
  *ret_client = client;
  return ORBIT_OK;
}

int orbit_client_from_environment(struct orbit_client **ret_client, struct orbit_error *error) {
  struct orbit_credentials *credentials = NULL;
  int status = orbit_credentials_load(NULL, &credentials, error);
  if (status != ORBIT_OK) return status;
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  options.url = credentials->url;
  options.token = credentials->token;
  status = orbit_client_new(&options, ret_client, error);
  orbit_credentials_free(credentials);
  return status;
}

static void connection_free(struct sdk_connection *connection) {
  curl_easy_cleanup(connection->curl);
  json_clear(&connection->json);
  buffer_clear(&connection->body);
  free(connection);
}

/* A connection of the process that this one was forked from. Its socket is shared: whatever was said on it, a farewell
 * included, would stand amid the parent's requests. So it says it to /dev/null. */
static void connection_disown(struct sdk_connection *connection) {
  curl_socket_t shared = CURL_SOCKET_BAD;
  cleanup(guard_close) int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  (void)curl_easy_getinfo(connection->curl, CURLINFO_ACTIVESOCKET, &shared);
  bool silent = shared == CURL_SOCKET_BAD || (nowhere >= 0 && dup3(nowhere, shared, O_CLOEXEC) >= 0);
  if (!silent) connection->curl = NULL; /* rather lost than heard */
  connection_free(connection);
}

/* All idle connections, out of the client. With the lock held, or alone. */
static struct sdk_connection *idle_take(struct orbit_client *client) {
  struct sdk_connection *idle = client->idle;
  client->idle = NULL;
  client->idle_count = 0;
  return idle;
}

static void connections_free(struct sdk_connection *first, bool own) {
  while (first != NULL) {
    struct sdk_connection *next = first->next;
    (own ? connection_free : connection_disown)(first);
    first = next;
  }
}

void orbit_client_free(struct orbit_client *client) {
  if (client == NULL) return;
  connections_free(idle_take(client), client->owner == getpid());
  if (client->authorization != NULL) sdk_wipe(client->authorization, strlen(client->authorization));
  free(client->authorization);
  (void)pthread_mutex_destroy(&client->lock);
  sdk_arena_clear(&client->texts);
  free(client);
}

/* ---- Connections ---- */

static struct sdk_connection *connection_take(struct orbit_client *client) {
  struct sdk_connection *inherited = NULL;
  pid_t self = getpid();
  (void)pthread_mutex_lock(&client->lock);
  if (client->owner != self) inherited = idle_take(client);
  client->owner = self;
  struct sdk_connection *connection = client->idle;
  if (connection != NULL) {
    client->idle = connection->next;
    client->idle_count--;
  }
  (void)pthread_mutex_unlock(&client->lock);
  connections_free(inherited, false);
  if (connection != NULL) return connection;
  connection = calloc(1, sizeof *connection);
  if (connection == NULL) return NULL;
  json_init_answers(&connection->json);
  buffer_init(&connection->body, answer_bytes_max);
  connection->curl = curl_easy_init();
  if (connection->curl != NULL) return connection;
  connection_free(connection);
  return NULL;
}

static void connection_give_back(struct orbit_client *client, struct sdk_connection *connection) {
  if (connection->body.capacity > answer_bytes_kept) {
    buffer_clear(&connection->body);
    json_clear(&connection->json);
  }
  (void)pthread_mutex_lock(&client->lock);
  bool keep = client->idle_count < idle_connections_max;
  if (keep) {
    connection->next = client->idle;
    client->idle = connection;
    client->idle_count++;
  }
  (void)pthread_mutex_unlock(&client->lock);
  if (!keep) connection_free(connection);
}

void sdk_exchange_end(struct sdk_exchange *exchange) {
  if (exchange->connection != NULL) connection_give_back(exchange->client, exchange->connection);
  exchange->connection = NULL;
}

void sdk_exchange_wipe(struct sdk_exchange *exchange) {
  struct sdk_connection *connection = exchange->connection;
  if (connection == NULL) return;
  if (connection->body.data != NULL) sdk_wipe(connection->body.data, connection->body.capacity);
  if (connection->json.scratch.data != NULL) sdk_wipe(connection->json.scratch.data, connection->json.scratch.capacity);
}

/* ---- One request ---- */

static size_t body_received(char *data, size_t size, size_t count, void *context) {
  struct sdk_connection *connection = context;
  buffer_append(&connection->body, data, size * count);
  return connection->body.failed ? 0 : size * count;
}

/* Programs that this one starts get no connection of ours. */
static curl_socket_t socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
  (void)context, (void)purpose;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The header's value without spaces around it, when `line` is that header. */
static bool header_is(struct bytes line, const char *name, struct bytes *ret_value) {
  size_t size = strlen(name);
  if (line.size <= size || strncasecmp((const char *)line.data, name, size) != 0 || line.data[size] != ':') return false;
  struct bytes value = bytes_of(line.data + size + 1, line.size - size - 1);
  while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t')) value = bytes_of(value.data + 1, value.size - 1);
  while (value.size > 0 && value.data[value.size - 1] <= ' ') value.size--;
  *ret_value = value;
  return true;
}

static size_t header_received(char *data, size_t size, size_t count, void *context) {
  struct sdk_connection *connection = context;
  struct bytes line = bytes_of(data, size * count), value;
  if (header_is(line, "X-Request-Id", &value)) {
    sdk_text_copy(connection->request_id, sizeof connection->request_id, value);
  } else if (header_is(line, "Retry-After", &value)) {
    uint32_t seconds = 0;
    for (size_t i = 0; i < value.size && i < 6 && value.data[i] >= '0' && value.data[i] <= '9'; i++) {
      seconds = seconds * 10 + (uint32_t)(value.data[i] - '0');
    }
    connection->retry_after_s = seconds;
  }
  return size * count;
}

static void headers_free(struct curl_slist **headers) { curl_slist_free_all(*headers); }

static bool header_add(struct curl_slist **headers, const char *line) {
  struct curl_slist *longer = curl_slist_append(*headers, line);
  if (longer == NULL) return false;
  *headers = longer;
  return true;
}

static bool headers_make(const struct orbit_client *client, const char *key, bool has_body, struct curl_slist **headers) {
  char line[http_header_bytes_max / 64];
  if (!header_add(headers, "Accept: application/json") || !header_add(headers, "Expect:")) return false;
  if (client->authorization != NULL && !header_add(headers, client->authorization)) return false;
  if (has_body && !header_add(headers, "Content-Type: application/json")) return false;
  if (key == NULL) return true;
  (void)snprintf(line, sizeof line, "Idempotency-Key: %s", key);
  return header_add(headers, line);
}

static void curl_prepare(const struct orbit_client *client, struct sdk_connection *connection, const char *method,
                         const char *url, struct curl_slist *headers, struct bytes body) {
  CURL *curl = connection->curl;
  curl_easy_reset(curl); /* keeps the connection itself */
  (void)curl_easy_setopt(curl, CURLOPT_URL, url);
  (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
  (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  (void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  (void)curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, socket_open);
  (void)curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)kept_alive_s_max);
  (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)client->connect_timeout_ms);
  (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)client->timeout_ms);
  (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, client->user_agent);
  (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_received);
  (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, connection);
  (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_received);
  (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, connection);
  if (client->ca_file != NULL) (void)curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
  if (body.data != NULL) {
    (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
  } else if (strcmp(method, "GET") != 0) {
    (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
  }
  (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

static int transport_failure(CURLcode code, struct orbit_error *error) {
  int status = ORBIT_NO_ANSWER;
  switch (code) {
    case CURLE_OUT_OF_MEMORY:
      return sdk_no_memory(error);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      status = ORBIT_NOT_CONNECTED;
      break;
    case CURLE_WRITE_ERROR: /* body_received gave up */
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      status = ORBIT_BAD_ANSWER;
      break;
    default:
      break;
  }
  return sdk_fail(error, status, NULL, "%s", curl_easy_strerror(code));
}

/* The answer of a refusal: its envelope's error where it has one, else the bare status. */
static int refusal(struct sdk_exchange *exchange, struct orbit_error *error) {
  struct sdk_arena arena = {.blocks = NULL};
  struct sdk_view document = {.json = exchange->json, .arena = &arena, .absent = !exchange->is_json};
  struct sdk_view inner = sdk_view_object(&document, "error");
  const char *code = sdk_view_text(&inner, "code"), *message = sdk_view_text(&inner, "message");
  const char *field = sdk_view_text(&inner, "field");
  uint64_t retry_after_ms = sdk_view_u64(&inner, "retry_after_ms");
  (void)sdk_fail(error, ORBIT_REFUSED, field, "%s", message != NULL ? message : "the server refused and gave no reason");
  if (error != NULL) {
    error->http_status = exchange->http_status;
    error->retry_after_ms = retry_after_ms != 0 ? retry_after_ms : (uint64_t)exchange->connection->retry_after_s * 1000;
    sdk_text_copy(error->code, sizeof error->code, bytes_text(code != NULL ? code : ""));
    sdk_text_copy(error->request_id, sizeof error->request_id, bytes_text(exchange->request_id));
  }
  sdk_arena_clear(&arena);
  return ORBIT_REFUSED;
}

static int answer_read(struct sdk_exchange *exchange, struct orbit_error *error) {
  struct sdk_connection *connection = exchange->connection;
  long http_status = 0;
  char *content_type = NULL;
  (void)curl_easy_getinfo(connection->curl, CURLINFO_RESPONSE_CODE, &http_status);
  (void)curl_easy_getinfo(connection->curl, CURLINFO_CONTENT_TYPE, &content_type);
  exchange->http_status = (int32_t)http_status;
  exchange->body = buffer_bytes(&connection->body);
  exchange->json = &connection->json;
  memcpy(exchange->request_id, connection->request_id, sizeof exchange->request_id);

  struct fault fault = {.status = STATUS_OK};
  bool says_json = content_type != NULL && strncasecmp(content_type, "application/json", 16) == 0;
  if (says_json && exchange->body.size > 0) {
    enum status parsed = json_parse(exchange->json, exchange->body, &fault);
    if (parsed == STATUS_NO_MEMORY) return sdk_no_memory(error);
    exchange->is_json = parsed == STATUS_OK;
  }
  if (http_status >= 400) return refusal(exchange, error);
  if (http_status < 200 || http_status > 299 || (says_json && !exchange->is_json)) {
    return sdk_fail(error, ORBIT_BAD_ANSWER, NULL, "an answer with status %ld that Orbit does not give%s%s", http_status,
                    fault.message[0] != '\0' ? ": " : "", fault.message);
  }
  if (exchange->is_json && exchange->json->tokens[0].type == JSON_OBJECT) {
    exchange->data = json_member(exchange->json, 0, "data");
  }
  return ORBIT_OK;
}

static int arguments_judge(const char *method, const char *path, const char *key, struct bytes body,
                           struct orbit_error *error) {
  static const char *const methods[] = {"GET", "POST", "PATCH", "DELETE"};
  bool known = false;
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    known = known || (method != NULL && strcmp(method, methods[i]) == 0);
  if (!known) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "method", "the method must be GET, POST, PATCH or DELETE");
  if (path == NULL || path[0] != '/' || !sdk_is_visible_ascii(path, http_target_bytes_max) || strchr(path, '#') != NULL) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "path", "the path must begin with / and be percent-encoded");
  }
  if (key != NULL && !sdk_is_visible_ascii(key, idempotency_key_chars_max)) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "Idempotency-Key",
                    "the operation key must be 1–128 visible ASCII characters");
  }
  if (body.size > http_batch_body_bytes_max) {
    return sdk_fail(error, ORBIT_INVALID_ARGUMENT, NULL, "the body is larger than 4 MiB");
  }
  return ORBIT_OK;
}

int sdk_exchange(struct orbit_client *client, const char *method, const char *path, const char *key, struct bytes body,
                 struct sdk_exchange *exchange, struct orbit_error *error) {
  *exchange = (struct sdk_exchange){.client = client};
  if (client == NULL) return sdk_fail(error, ORBIT_INVALID_ARGUMENT, "client", "there is no client");
  int status = arguments_judge(method, path, key, body, error);
  if (status != ORBIT_OK) return status;
  struct sdk_connection *connection = connection_take(client);
  if (connection == NULL) return sdk_no_memory(error);
  exchange->connection = connection;
  buffer_reset(&connection->body);
  connection->request_id[0] = '\0';
  connection->retry_after_s = 0;

  cleanup(headers_free) struct curl_slist *headers = NULL;
  cleanup(buffer_clear) struct buffer url;
  buffer_init(&url, http_target_bytes_max * 2);
  buffer_append_format(&url, "%s%s", client->base, path);
  buffer_append_char(&url, '\0');
  if (url.failed || !headers_make(client, key, body.data != NULL, &headers)) return sdk_no_memory(error);
  curl_prepare(client, connection, method, (const char *)url.data, headers, body);
  CURLcode code = curl_easy_perform(connection->curl);
  return code == CURLE_OK ? answer_read(exchange, error) : transport_failure(code, error);
}

struct sdk_view sdk_exchange_view(struct sdk_exchange *exchange, const char *name, struct sdk_arena *arena) {
  struct sdk_view view = {.json = exchange->json, .arena = arena, .object = exchange->data, .absent = exchange->data == 0};
  view.bad = view.absent || exchange->json->tokens[view.object].type != JSON_OBJECT;
  if (view.bad) view.absent = true;
  if (name == NULL) return view;
  struct sdk_view inner = sdk_view_object(&view, name);
  inner.bad = inner.bad || inner.absent;
  return inner;
}

int sdk_exchange_judge(const struct sdk_exchange *exchange, const struct sdk_view *view, struct orbit_error *error) {
  if (view->arena->failed) return sdk_no_memory(error);
  if (!view->bad) return ORBIT_OK;
  int status = sdk_fail(error, ORBIT_BAD_ANSWER, NULL, "the answer does not have the fields that Orbit's answers have");
  if (error != NULL) sdk_text_copy(error->request_id, sizeof error->request_id, bytes_text(exchange->request_id));
  return status;
}

/* ---- Any route ---- */

int orbit_call(struct orbit_client *client, const char *method, const char *path, const char *key, const char *body,
               size_t body_size, struct orbit_response **ret_response, struct orbit_error *error) {
  cleanup(sdk_exchange_end) struct sdk_exchange exchange;
  int status = sdk_exchange(client, method, path, key, bytes_of(body, body != NULL ? body_size : 0), &exchange, error);
  if (status != ORBIT_OK) return status;
  struct orbit_response *response = sdk_result_new(sizeof *response);
  if (response == NULL) return sdk_no_memory(error);
  struct sdk_arena *arena = sdk_result_arena(response);
  response->http_status = exchange.http_status;
  response->request_id = sdk_arena_string(arena, exchange.request_id);
  response->body = sdk_arena_text(arena, exchange.body.data != NULL ? exchange.body : bytes_text(""));
  response->body_size = exchange.body.size;
  if (exchange.data != 0) {
    struct bytes data = json_raw(exchange.json, exchange.data);
    response->data = sdk_arena_text(arena, data);
    response->data_size = data.size;
  }
  if (arena->failed) {
    orbit_response_free(response);
    return sdk_no_memory(error);
  }
  *ret_response = response;
  return ORBIT_OK;
}

void orbit_response_free(struct orbit_response *response) { sdk_result_free(response); }
