package reference

// attribute is a search attribute of runs.
type attribute struct{ name, kind, doc string }

// attributes are those that starter setup adds to a namespace; a test compares them with what
// workflows write.
var attributes = []attribute{
	{"RepriseStatus", "Keyword", "The status of the run. It changes when the run ends, is paused or queued, awaits an answer, and when all that is open waits for a retry or for a person: in loops and child runs for at least 30 s, and a hundredth of the time that the run has taken."},
	{"ReprisePlaybook", "Keyword", "The name of the playbook."},
	{"RepriseDeadLetters", "Int", "How many iterations of the run have failed."},
	{"RepriseNextRetry", "Datetime", "When the first retry of a step is due, without those in loops, as that was when the status changed last."},
	{"RepriseOrigin", "Keyword", "Of a run that repeats failed iterations: the workflow ID of the run in which they failed."},
	{"RepriseLabels", "KeywordList", "The labels of the playbook, each as `name=value`."},
}

// variable is an environment variable that a program reads.
type variable struct {
	name, of, doc string
	absent        string // what counts without it
	example       string
}

const (
	ofWorkers  = "worker, and the local worker of starter"
	ofPrograms = "worker and starter"
)

// variables are all that the programs read; a test compares them with the code.
var variables = []variable{
	{"REPRISE_TASK_QUEUE", ofPrograms, "The task queue of the workers, as `--task-queue`.", "reprise", "reprise"},
	{"REPRISE_CONNECTIONS", ofWorkers + ", and serve", "A YAML file of connections by name, as `--connections`.", "none", "/etc/reprise/connections.yaml"},
	{"REPRISE_AUTH_NAME", ofWorkers + ", and serve", "The connection `name`, whose name in upper case replaces NAME: a URL, `bearer:TOKEN` and the like, or an OAuth 2.0 client as JSON.", "none", "postgres://user:password@db.example.com/clinic"},
	{"REPRISE_SECRET_KEY", ofWorkers + ", and serve", "The key that encrypts secret results and makes the tokens of answers, the same for all. Older keys follow it, with commas.", "none; a local server makes its own", "NEW,OLD"},
	{"REPRISE_CALLBACK_URL", ofWorkers, "Where other systems reach `starter serve`, for answers, as `--callback-url`.", "none; a local worker accepts answers itself", "https://reprise.example.com"},
	{"REPRISE_DIRECTORY", "worker", "Where relative paths of the tools `file` and `sqlite` begin, as `--directory`.", "the working directory", "/var/lib/reprise"},
	{"REPRISE_PLAYBOOKS", ofWorkers + ", and serve", "The folder of the playbooks that others run by name, as `--playbooks`.", "none; of starter run the folder of the playbook, of starter dev the working directory", "/etc/reprise/playbooks"},
	{"REPRISE_ALLOW_PYTHON", "worker", "`true` lets playbooks run Python with the rights of the worker, as `--allow-python`.", "false", "true"},
	{"REPRISE_LOG_LEVEL", "worker", "`debug`, `info` (attempts that are made again), `warn` (failures that ended a call) or `error`, as `--log-level`.", "warn", "info"},
	{"REPRISE_LOG_FORMAT", "worker", "`text` or `json`, as `--log-format`.", "text", "json"},
	{"REPRISE_LOG_FILE", "worker", "A file to log to as well, as JSON and from `info` on, which `starter logs` reads, as `--log-file`.", "none", "/var/log/reprise/worker.log"},
	{"REPRISE_RETRY_MAX_RETRIES_LIMIT", ofPrograms, "The most retries that a policy may ask for.", "10", "20"},
	{"REPRISE_RETRY_MAX_DELAY_LIMIT", ofPrograms, "The longest delay that a policy may ask for.", "1h", "6h"},
	{"REPRISE_RUNS_LIMIT", ofWorkers, "The most child runs of a first run, at any depth.", "10000", "50000"},
	{"REPRISE_VISITS_LIMIT", ofWorkers, "How often a run makes one step, where routes lead back to it.", "1000", "5000"},
	{"REPRISE_CACHE_BYTES", ofWorkers, "The memory in use, in bytes from 33554432, above which no workflows are kept, as `--cache-bytes`.", "half of GOMEMLIMIT or of the limit of the cgroup, else 512 MiB", "1073741824"},
	{"REPRISE_RATE_LIMITS", ofWorkers, "A YAML file of rate limits that no playbook exceeds, as `--rate-limits`.", "none", "/etc/reprise/rate-limits.yaml"},
	{"REPRISE_PAYLOAD_STORE", ofPrograms, "Where values over 128 KiB are kept, the same for all, as `--payload-store`.", "none; a folder for local servers", "s3://reprise-payloads/clinic?region=eu-central-1"},
	{"REPRISE_MAX_RESULT_BYTES", ofWorkers, "The largest value as JSON, in bytes from 262144 to 536870912, where there is a payload store.", "67108864, which is 64 MiB", "134217728"},
	{"REPRISE_MAX_ANSWERS_BYTES", ofWorkers, "The memory that what all attempts of a worker read may take together, in bytes from 67108864.", "268435456, which is 256 MiB", "536870912"},
	{"REPRISE_METRICS_ADDRESS", ofWorkers, "host:port at which Prometheus finds metrics, as `--metrics-address`.", "none", "127.0.0.1:9464"},
	{"REPRISE_TRACE_HEADERS", ofWorkers, "`false` keeps `traceparent` out of requests of `http`, as `--trace-headers`.", "true", "false"},
	{"REPRISE_UI_URL", "starter", "The web UI of the Temporal server, for links to runs; else `TEMPORAL_UI_URL`.", "no links", "https://temporal.example.com"},
	{"REPRISE_DEVSERVER", "starter", "The program that local servers are.", "temporal of the path, else devserver beside starter, else bin/devserver of the checkout", "/usr/local/bin/temporal"},
	{"DEVSERVER_API_KEY", "devserver", "The key that clients must send. starter sets it for the server that it starts.", "none", "KEY"},
	{"TEMPORAL_ADDRESS", ofPrograms, "host:port of the Temporal server, as `--address`. Temporal's other variables, such as `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS` and `TEMPORAL_PROFILE`, count too.", "a local server of starter; 127.0.0.1:7233 of worker", "temporal.example.com:7233"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", ofPrograms, "Where metrics and traces are sent, as OTLP over HTTP. OpenTelemetry's other variables, such as `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` and `OTEL_SDK_DISABLED`, count too.", "nothing is sent", "http://localhost:4318"},
}

// file is a file that a program reads.
type file struct{ name, of, doc, example string }

// files are those that operators write; a test reads the examples.
var files = []file{
	{
		"connections.yaml", ofWorkers + ", and serve",
		"The file of `--connections`: a map of names to connections. A connection of `http` is `https://user:password@host`, `bearer:TOKEN` or " +
			"`header:NAME: VALUE`, the last two perhaps with the host behind an `@`, or an OAuth 2.0 client. One of `postgres` is a URL. " +
			"A connection that the file does not name is looked for in `REPRISE_AUTH_NAME`.",
		`pg_main: postgres://user:password@db.example.com/clinic
crm: bearer:TOKEN@https://crm.example.com
orders:
  oauth2:
    token_url: https://login.example.com/oauth2/token
    client_id: reprise
    client_secret: SECRET`,
	},
	{
		"rate-limits.yaml", ofWorkers,
		"The file of `--rate-limits`: a map of keys, shared names or hosts to the `requests` and `per` that no playbook exceeds, and `max_pause`, how long a `Retry-After` of one attempt holds back the others.",
		`api.example.com: {requests: 100, per: 1s}
github: {requests: 5000, per: 1h, max_pause: 15m}`,
	},
	{
		"callers.yaml", "serve, and ui",
		"The file of `--tokens`: a map of callers to the SHA-256 hashes of their tokens, the playbooks that they may start, `*` for all, and their `role` in `starter ui`. " +
			"`starter serve token new NAME` prints a token and its entry.",
		`ci: {sha256: HASH, playbooks: [nightly]}
ops: {sha256: [HASH, OTHER], playbooks: ["*"], role: operator}`,
	},
}
