"""Owns the two schema documents as the test uses them: their operations, examples and messages, and the judging by them."""
import json
import os
import re

import jsonschema
import yaml


class Wrong(Exception):
    """What was seen is not what a document says."""


def every_error(validator, value, what):
    errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:400]}" for error in validator.iter_errors(value)]
    if errors:
        raise Wrong(f"{what}\n  " + "\n  ".join(errors[:5]))


class Documents:
    """schema/openapi.yaml, schema/worker.asyncapi.yaml and the tables that they repeat words of."""

    def __init__(self, source):
        self.source = source
        self.openapi = self.load("schema/openapi.yaml")
        self.asyncapi = self.load("schema/worker.asyncapi.yaml")
        self.schemas = self.openapi["components"]["schemas"]
        self.operations = {operation["operationId"]: (method.upper(), path, operation)
                           for path, methods in self.openapi["paths"].items() for method, operation in methods.items()}
        messages = self.asyncapi["components"]["messages"]
        self.types = {message["name"]: message["payload"] for message in messages.values()}
        operations = self.asyncapi["operations"].values()
        heard = [ref for operation in operations if operation["action"] == "receive" for ref in operation["messages"]]
        keys = [ref["$ref"].rsplit("/", 1)[1] for ref in heard]
        # What workers say, by the name of the example; what the server says, by type.
        self.messages = {row["name"]: row["payload"] for key in keys for row in messages[key]["examples"]}
        self.messages_of_workers = set(self.messages)
        self.types_of_server = {message["name"] for key, message in messages.items() if key not in keys}
        self.seen = set()  # which members answers have had, as (identity of the schema, name)

    def text(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as file:
            return file.read()

    def load(self, path):
        """The document. The loader in C is ten times faster, where it is there."""
        return yaml.load(self.text(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    # ---- Judging ----

    def validator(self, schema, of_worker=False):
        home = "file:///" + ("worker.asyncapi.yaml" if of_worker else "openapi.yaml")
        store = {"file:///openapi.yaml": self.openapi, "file:///worker.asyncapi.yaml": self.asyncapi}
        resolver = jsonschema.RefResolver(home, store[home], store=store)
        kind = jsonschema.Draft7Validator if of_worker else jsonschema.Draft202012Validator
        return kind(schema, resolver=resolver)

    def resolved(self, item):
        while "$ref" in item:
            at = self.openapi
            for step in item["$ref"].split("#/")[1].split("/"):
                at = at[step]
            item = at
        return item

    def judge_answer(self, operation, status, headers, text, what):
        if str(status) not in operation["responses"]:
            raise Wrong(f"{what}\nthe document does not know this status here")
        return self.judge_response(self.resolved(operation["responses"][str(status)]), headers, text, what)

    def judge_component(self, name, headers, text, what):
        return self.judge_response(self.openapi["components"]["responses"][name], headers, text, what)

    def judge_response(self, response, headers, text, what):
        """Headers, media type and body of an answer; its body, parsed where it is JSON."""
        for name, header in response["headers"].items():
            if headers.get(name) is None:
                raise Wrong(f"{what}\nthe header {name} is missing")
            every_error(self.validator(self.resolved(header)["schema"]), headers[name], f"{what}: {name}")
        media = headers.get("Content-Type", "").split(";")[0]
        if media not in response["content"]:
            raise Wrong(f"{what}\nContent-Type is {headers.get('Content-Type')}, none of {sorted(response['content'])}")
        content = response["content"][media]
        value = json.loads(text) if media == "application/json" else text
        every_error(self.validator(content["schema"]), value, what)
        self.note(content["schema"], value, self.openapi)
        if isinstance(value, dict) and value["request_id"] != headers["X-Request-Id"]:
            raise Wrong(f"{what}\nX-Request-Id is {headers['X-Request-Id']}")
        return value

    def judge_body(self, operation, body, what):
        every_error(self.validator(operation["requestBody"]["content"]["application/json"]["schema"]), body, what)

    def judge_message(self, message):
        """A message of either side by the schema of its type, which is returned."""
        kind = message.get("type")
        if kind not in self.types:
            raise Wrong(f"no message has this type: {message}")
        every_error(self.validator(self.types[kind], of_worker=True), message, json.dumps(message)[:600])
        return kind

    # ---- Which members have been seen ----

    def target(self, schema, document):
        """The schema that a reference stands for, and the document that it stands in."""
        while isinstance(schema, dict) and "$ref" in schema:
            home, path = schema["$ref"].split("#/")
            document = self.openapi if home else document
            schema = document
            for step in path.split("/"):
                schema = schema[step]
        return schema, document

    def holds(self, schema, value, document):
        return self.validator(schema, of_worker=document is self.asyncapi).is_valid(value)

    def note(self, schema, value, document):
        """Notes the members of a value that its schema describes, which has been found good."""
        schema, document = self.target(schema, document)
        if not isinstance(schema, dict):
            return
        if isinstance(value, list) and "items" in schema:
            for row in value:
                self.note(schema["items"], row, document)
        if isinstance(value, dict):
            for name in value.keys() & schema.get("properties", {}).keys():
                self.seen.add((id(schema), name))
                self.note(schema["properties"][name], value[name], document)
        for part in schema.get("allOf", []):
            self.note(part, value, document)
        for part in schema.get("anyOf", []) + schema.get("oneOf", []):
            if self.holds(part, value, document):
                self.note(part, value, document)
        if "if" in schema and "then" in schema and self.holds(schema["if"], value, document):
            self.note(schema["then"], value, document)

    def unseen(self):
        """The members that answers and messages of the server may have by their schemas, and that none has had."""
        roots = [(name, content["schema"], self.openapi) for name, (_, _, operation) in self.operations.items()
                 for status, response in operation["responses"].items() if status.startswith("2")
                 for content in self.resolved(response)["content"].values()]
        roots += [(kind, self.types[kind], self.asyncapi) for kind in self.types_of_server]
        found, visited = set(), set()
        while roots:
            name, schema, document = roots.pop()
            if isinstance(schema, dict) and "$ref" in schema:
                name = schema["$ref"].rsplit("/", 1)[1]
            schema, document = self.target(schema, document)
            if not isinstance(schema, dict) or id(schema) in visited:
                continue
            visited.add(id(schema))
            for member, inner in schema.get("properties", {}).items():
                if inner is not False and (id(schema), member) not in self.seen:
                    found.add(f"{name}.{member}")
                roots.append((f"{name}.{member}", inner, document))
            parts = schema.get("allOf", []) + schema.get("anyOf", []) + schema.get("oneOf", [])
            roots += [(name, part, document) for part in parts + [schema[key] for key in ("items", "then") if key in schema]]
        return found

    # ---- Examples ----

    @staticmethod
    def example(operation, name):
        return operation["requestBody"]["content"]["application/json"]["examples"][name]["value"]

    def body_examples(self):
        return {(name, example) for name, (_, _, operation) in self.operations.items() if "requestBody" in operation
                for example in operation["requestBody"]["content"]["application/json"]["examples"]}

    def judge_examples(self):
        for name, (_, _, operation) in self.operations.items():
            if "requestBody" in operation:
                self.judge_content(operation["requestBody"], f"{name}, request")
                self.judge_fields(operation["requestBody"]["content"]["application/json"], name)
            for status, response in operation["responses"].items():
                self.judge_content(self.resolved(response), f"{name}, {status}")
            for parameter in map(self.resolved, operation.get("parameters", ())):
                if "example" in parameter:
                    every_error(self.validator(parameter["schema"]), parameter["example"], f"{name}, {parameter['name']}")
        for name, response in self.openapi["components"]["responses"].items():
            self.judge_content(response, name)
        for message in self.asyncapi["components"]["messages"].values():
            for example in message["examples"]:
                if self.judge_message(example["payload"]) != message["name"]:
                    raise Wrong(f"an example of {message['name']} is another message")

    def judge_fields(self, content, what):
        """Every field that a body may have stands in one of its examples."""
        fields = set(self.target(content["schema"], self.openapi)[0].get("properties", {}))
        left = fields - {name for example in content["examples"].values() for name in example["value"]}
        if left:
            raise Wrong(f"{what}: no example has {sorted(left)}")

    def judge_content(self, item, what):
        for content in item["content"].values():
            if not content["examples"]:
                raise Wrong(f"{what}: no example")
            for name, example in content["examples"].items():
                every_error(self.validator(content["schema"]), example["value"], f"{what}, example {name}")

    # ---- The tables that the words come from ----

    def same(self, what, said, table):
        if said != table:
            raise Wrong(f"{what}: the document has {said}, the table {table}")

    def judge_tables(self):
        words = {}
        for line in self.text("schema/words.def").splitlines():
            if begin := re.match(r"WORDS\((\w+),", line):
                row = words.setdefault(begin[1], [])
            elif word := re.match(r"WORD\(\w+, \d+, (\w+)\)", line):
                row.append(word[1])
        for name, row in words.items():
            schema = "".join(part.capitalize() for part in name.split("_"))
            self.same(schema, self.schemas[schema]["enum"], row)
        self.same("Permission", self.schemas["Permission"]["enum"], list(self.permissions().values()))
        granted = [word for word in self.permissions().values() if word != "root"]
        self.same("GrantedPermission", self.schemas["GrantedPermission"]["enum"], granted)
        codes = re.findall(r'^STATUS\(\w+, "(\w+)", \d+', self.text("src/base/status.def"), re.M)
        public = codes[codes.index("OK") + 1:codes.index("UNAVAILABLE") + 1]
        self.same("WorkerErrorCode", self.asyncapi["components"]["schemas"]["WorkerErrorCode"]["enum"], public)
        self.same("ErrorCode", self.schemas["ErrorCode"]["enum"], [code for code in public if code != "LEASE_LOST"])
        self.judge_events()
        self.judge_feed()

    def judge_feed(self):
        """The feed shows events of queues, tasks and schedules, by their numbers."""
        rows = re.findall(r'^EVENT\((\d+), \w+, "([^"]+)"', self.text("schema/events.def"), re.M)
        shown = [name for number, name in rows if 16 <= int(number) <= 19 or 30 <= int(number) <= 49 or 70 <= int(number) <= 79]
        self.same("FeedType", self.schemas["FeedType"]["enum"], shown)

    def judge_events(self):
        """The fields of every event that a task can have, by schema/events.def."""
        listed = self.schemas["Event"]["properties"]["type"]["enum"]
        common = re.findall(r"^COMMON\(\d+, \w+, (\w+), (\w+),", self.text("schema/events.def"), re.M)
        for name, fields in re.findall(r'^EVENT\(\d+, \w+, "([^"]+)".*\n((?:FIELD.*\n)*)', self.text("schema/events.def"), re.M):
            if name not in listed:
                continue
            schema = self.schemas["".join(part.capitalize() for part in re.split(r"[._]", name)) + "Data"]
            rows = common + re.findall(r"^FIELD\(\d+, \w+, (\w+), (\w+),", fields, re.M)
            self.same(name, list(schema["properties"]), [field for field, _ in rows])
            self.same(name, schema["required"], [field for field, presence in rows if presence == "REQUIRED"])

    def permissions(self):
        return dict(re.findall(r'^PERMISSION\(\d+, (\w+), "([^"]+)"', self.text("schema/permissions.def"), re.M))

    # ---- Routes ----

    def paths(self):
        return {path: {method.upper() for method in methods} for path, methods in self.openapi["paths"].items()}

    def streams(self, path):
        """Whether GET of this path may be answered with a stream."""
        answers = self.openapi["paths"][path]["get"]["responses"].values()
        return any("text/event-stream" in self.resolved(answer).get("content", {}) for answer in answers)

    def judge_routes(self):
        """The document, the server's table and schema/http.md know the same routes, and the same permissions."""
        said = {(method, path): operation.get("x-permission") for method, path, operation in self.operations.values()}
        rows = re.findall(r'\{"([A-Z]+)", "(/[^"]*)", (?:PERMISSION_(\w+)|0),', self.text("src/edge/routes.c"))
        table = {(method, path): self.permissions().get(name) for method, path, name in rows}
        if said != table:
            raise Wrong(f"the document has {said.items() - table.items()}, the server {table.items() - said.items()}")
        lines = [line.split("|")[1] for line in self.text("schema/http.md").splitlines() if line.startswith("| `")]
        told = {row for line in lines for row in re.findall(r"`([A-Z]+) (/[^`]*)`", line)}
        if said.keys() != told:
            raise Wrong(f"the document and schema/http.md differ in {said.keys() ^ told}")
