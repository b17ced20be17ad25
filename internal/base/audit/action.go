package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/base/secrets"
)

// ActionName names what was done.
type ActionName string

// The actions. Those of people that steer runs are the names of the commands, such as pause.
const (
	Start       ActionName = "start"
	Answer      ActionName = "answer"
	Cancel      ActionName = "cancel"
	Login       ActionName = "login"
	LoginProof  ActionName = "login-proof" // what a person has brought from a login is exchanged
	Logout      ActionName = "logout"
	SetState    ActionName = "state-set"
	PruneStates ActionName = "state-prune" // forgets states whose elements are gone
	Attempt     ActionName = "attempt"     // a step's
	Backfill    ActionName = "backfill"    // of the partitions of a playbook that have no run
	RunAgain    ActionName = "run-again"   // with the playbook and the input of a run
	Reprocess   ActionName = "reprocess"   // the failed iterations of a run
	Trigger     ActionName = "trigger"     // a schedule, now
	Change      ActionName = "change"      // whatever it is, of somebody who may change nothing
	Read        ActionName = "read"        // only if it is denied
	Decode      ActionName = "decode"      // payloads
	Encode      ActionName = "encode"
	Download    ActionName = "download" // values of the payload store
	FileChanged ActionName = "file-changed"
	Recovered   ActionName = "log-continued" // the line before was cut short
)

// ActorProof is how the name of an actor is known.
type ActorProof string

// How names are known. ProofClaimed is what a client says of itself: whoever may write to the namespace can say it.
const (
	ProofToken     ActorProof = "token"
	ProofJWT       ActorProof = "jwt"   // of an identity provider
	ProofProxy     ActorProof = "proxy" // that signs people in
	ProofLink      ActorProof = "link"  // to the page of runs, in the name of the person who has started it
	ProofSignature ActorProof = "signature"
	ProofClaimed   ActorProof = "claimed"
	ProofNone      ActorProof = "none"
)

// ClaimedBy returns the proof of a name that a client says of itself; ProofNone for "".
func ClaimedBy(name string) ActorProof {
	if name == "" {
		return ProofNone
	}
	return ProofClaimed
}

// ActionOutcome is how an action ended.
type ActionOutcome string

// The outcomes.
const (
	Begun    ActionOutcome = "begun" // a later line says how it ended, unless the program was killed
	Done     ActionOutcome = "done"
	Accepted ActionOutcome = "accepted" // by a run, which performs it
	Repeated ActionOutcome = "repeated" // an earlier request has done it
	Stored   ActionOutcome = "kept"     // until a worker is there
	Refused  ActionOutcome = "refused"  // it is not possible
	Denied   ActionOutcome = "denied"   // the actor, playbook or connection may not
	Failed   ActionOutcome = "failed"
	Unknown  ActionOutcome = "unknown" // it may or may not have been done
)

// ActionTarget is what an action is about. Empty fields do not apply. It has names and IDs, and no value of a run.
type ActionTarget struct {
	Playbook   string `json:"playbook,omitempty"`
	Run        string `json:"run,omitempty"` // its workflow ID
	RunID      string `json:"run_id,omitempty"`
	Step       string `json:"step,omitempty"`
	Index      *int   `json:"index,omitempty"` // of the iteration
	Tool       string `json:"tool,omitempty"`
	Connection string `json:"connection,omitempty"`
	State      string `json:"state,omitempty"`
	Schedule   string `json:"schedule,omitempty"`
	File       string `json:"file,omitempty"` // of the operator, or the source of a secret
}

// LoggedAction is what a line says.
type LoggedAction struct {
	Actor  string     `json:"actor,omitempty"`
	Proof  ActorProof `json:"proof"`
	Action ActionName `json:"action"`
	// Begun is the number of the line that says that the action begins; 0 if there is none.
	Begun   int64         `json:"begun,omitempty"`
	Target  ActionTarget  `json:"target"`
	Outcome ActionOutcome `json:"outcome"`
	// Type is the type of the error of an action that was refused or denied, such as connection_denied.
	Type string `json:"type,omitempty"`
}

// chainedLine is a line of the log.
type chainedLine struct {
	Number  int64     `json:"n"`
	Time    time.Time `json:"time"`
	Program string    `json:"program"`
	LoggedAction
	// Previous is the SHA-256 of the line before, in hex; "" in the first line.
	Previous string `json:"previous"`
}

// firstBytes are the first bytes of every log.
const firstBytes = `{"n":1,"time":"`

const (
	// mostLine bounds a line, in bytes: the end of a file is read to continue it, and lines of verify are in memory.
	mostLine = 16 << 10
	// mostName bounds a text of a line, in bytes: clients may send any, and 10 of them, escaped to six times their
	// length, fit into a line.
	mostName = 200
)

// encode returns the line without its line break.
func (l chainedLine) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// mask hides secrets in the texts that clients can choose, and bounds them.
func (a *LoggedAction) mask(masked *secrets.Masker) {
	for _, text := range []*string{
		&a.Actor, &a.Target.Playbook, &a.Target.Run, &a.Target.Step, &a.Target.Tool, &a.Target.Connection, &a.Target.State, &a.Target.Schedule,
		&a.Target.File, &a.Type,
	} {
		if masked != nil {
			*text = masked.MaskText(*text)
		}
		*text = strings.ToValidUTF8(*text, "\uFFFD")
		if len(*text) > mostName {
			end := mostName
			for !utf8.RuneStart((*text)[end]) {
				end--
			}
			*text = (*text)[:end] + "…"
		}
	}
}
