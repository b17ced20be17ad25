package serve

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/base/audit"
	"reprise/internal/base/bearer"
	"reprise/internal/base/regular"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// anyPlaybook stands for all playbooks in the folder.
const anyPlaybook = "*"

// caller is a client that starts runs with a token.
type caller struct {
	// name is what people read, and the logs: a key of the file, or the subject of a token of the identity
	// provider.
	name string
	// id distinguishes callers: in workflow IDs, in the memos of runs, and where callers share what there is. It is the name of a
	// caller of the file.
	id        string
	proof     audit.ActorProof
	hashes    [][sha256.Size]byte // of the tokens
	playbooks []string            // those that it may start, if it has no grants
	grants    []grant
	role      Role
}

// Role is what the owner of a token may do on the page of runs.
type Role string

// The roles. RoleNone may not see the page.
const (
	RoleNone     Role = ""
	RoleViewer   Role = "viewer"   // sees runs
	RoleOperator Role = "operator" // also changes them
)

// Callers are the callers listed in a file. Changes to the file apply from the next request on; while it is missing
// or unreadable, there are no callers. Callers are safe for concurrent use; nil has none.
type Callers struct {
	path string

	mu      sync.Mutex
	read    fileState
	callers []*caller
	tokens  *bearer.Verifier // of an identity provider; nil for none
	now     func() time.Time // nil is time.Now
	// changed is called when the file has changed, with the error of reading it; nil for nobody.
	changed func(what string, err error)
	reason  string // the error that changed was last called with; "" if there was none
}

// callersFile is the name of the file in messages.
const callersFile = "the file of callers"

// OnChange sets who is notified of a changed file. Nil callers have no file.
func (c *Callers) OnChange(changed func(what string, err error)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
}

// notifyChange reports that the file was read, or why it could not be; each reason once.
func (c *Callers) notifyChange(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if c.changed != nil && (err == nil || reason != c.reason) {
		c.changed(callersFile, err)
	}
	c.reason = reason
}

// fileState identifies the version of a file.
type fileState struct {
	size     int64
	modified time.Time
}

func stateOf(path string) (fileState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{info.Size(), info.ModTime()}, nil
}

// mostCallers bounds the size of the file of callers, in bytes. It is read again when it changes: a path that names a
// log must not fill the memory.
const mostCallers = 1 << 20

// OpenCallers reads a file of callers: a YAML map from names to sha256, the hex hash of a token or a list of hashes;
// playbooks, the list of those that the caller may start, or roles, a map from patterns of playbooks to what the caller
// may do with their runs; and role, what the caller may do on the page of runs. The key jwt, which is no caller, names an
// identity provider. Errors have the place in the file.
func OpenCallers(path string) (*Callers, error) {
	c := &Callers{path: path}
	return c, c.readChanged()
}

// readChanged reads the file again if it has changed. If it cannot be read, there are no callers: somebody who was
// removed from it must not be admitted because of a mistake elsewhere in it.
func (c *Callers) readChanged() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if err != nil {
			c.read, c.callers, c.tokens = fileState{}, nil, nil
			c.notifyChange(err)
		}
	}()
	state, err := stateOf(c.path)
	if err != nil {
		return fmt.Errorf("read the callers: %w", err)
	}
	if state == c.read {
		return nil
	}
	if state.size > mostCallers {
		return fmt.Errorf("read the callers: %s has more than %d bytes", c.path, mostCallers)
	}
	text, err := regular.Read(c.path)
	if err != nil {
		return fmt.Errorf("read the callers: %w", err)
	}
	callers, settings, err := parseCallers(c.path, text)
	if err != nil {
		return err
	}
	c.read, c.callers = state, callers
	c.trust(settings)
	c.notifyChange(nil)
	return nil
}

// findCaller returns the caller with a request's token; nil if there is none. It compares every token, in constant
// time.
func (c *Callers) findCaller(token string) *caller {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	callers := c.callers
	c.mu.Unlock()
	sum := sha256.Sum256([]byte(token))
	var found *caller
	for _, one := range callers {
		for _, hash := range one.hashes {
			if subtle.ConstantTimeCompare(sum[:], hash[:]) == 1 {
				found = one
			}
		}
	}
	return found
}

// HolderOf returns the name and role of a token's owner; "" and RoleNone if there is none. The file is read again if
// it has changed; while it cannot be read, no token is valid.
func (c *Callers) HolderOf(token string) (name string, role Role, err error) {
	if c == nil {
		return "", RoleNone, nil
	}
	if err := c.readChanged(); err != nil {
		return "", RoleNone, err
	}
	if found := c.findCaller(token); found != nil {
		return found.name, found.role, nil
	}
	return "", RoleNone, nil
}

// bearerToken returns the token of a request; has says that the request has one, valid or not.
func bearerToken(header http.Header) (token string, has bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "bearer")
}

// callerName matches valid names of callers, which become part of workflow IDs.
var callerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// parseCallers parses a file of callers. Its errors quote no values: in a wrong file they may be tokens.
func parseCallers(path string, text []byte) ([]*caller, *bearer.Settings, error) {
	value, found := playbook.DecodeData(source.NewFile(path, text))
	if problems := found.Errors(); len(problems) > 0 {
		what := "not a YAML map of callers"
		if problems[0].Code == playbook.CodeDuplicateKey {
			what = "this name or key is already above, and each may be there once"
		}
		return nil, nil, fmt.Errorf("read the callers: %s:%s: %s [%s]", path, problems[0].Pos, what, problems[0].Code)
	}
	entries, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, nil, fmt.Errorf("read the callers: %s: expected a map of callers such as ci: {sha256: …, playbooks: [nightly]}", path)
	}
	var callers []*caller
	var settings *bearer.Settings
	holders := map[[sha256.Size]byte]string{} // names of callers by the hashes of their tokens
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !callerName.MatchString(name) {
			return nil, nil, fmt.Errorf("read the callers: %s: a caller's name consists of at most 64 letters, digits, _ and -", yamltree.PlaceOf(path, text, []string{name}))
		}
		one, err := (*caller)(nil), error(nil)
		if name == providerKey {
			settings, err = readProvider(entries[name])
		} else {
			one, err = parseCaller(name, entries[name])
		}
		if err == nil && one != nil {
			err = one.claimHashes(holders)
			callers = append(callers, one)
		}
		if problem, ok := errors.AsType[*callerProblem](err); ok {
			place := yamltree.PlaceOf(path, text, append([]string{name}, problem.path...))
			return nil, nil, fmt.Errorf("read the callers: %s: %s: %w", place, name, problem)
		}
	}
	return callers, settings, nil
}

// claimHashes records the caller as holder of its tokens. The error is that another caller has one of them.
func (c *caller) claimHashes(holders map[[sha256.Size]byte]string) error {
	for _, hash := range c.hashes {
		if other := holders[hash]; other != "" && other != c.name {
			return problemAt([]string{"sha256"}, "this is the token of %s as well, and a token belongs to one caller", other)
		}
		holders[hash] = c.name
	}
	return nil
}

// callerKeys are the keys of an entry.
var callerKeys = []string{"sha256", "playbooks", "roles", "role"}

// parseCaller parses an entry. The error is a *callerProblem.
func parseCaller(name string, entry any) (*caller, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return nil, problemAt(nil, "expected a map such as {sha256: …, playbooks: [nightly]}")
	}
	one := &caller{name: name, id: name, proof: audit.ProofToken}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if err := one.readField(key, fields[key]); err != nil {
			return nil, err
		}
	}
	switch {
	case len(one.grants) > 0 && len(one.playbooks) > 0:
		return nil, problemAt([]string{"playbooks"}, "playbooks and roles exclude each other; write roles: {NAME: start} for the playbooks")
	case len(one.hashes) == 0 || len(one.playbooks)+len(one.grants) == 0 && one.role == RoleNone:
		return nil, problemAt(nil, "needs sha256 (the hash of a token), and playbooks (those the caller may start), roles (what it may do, by playbooks) or role (viewer or operator of the web page)")
	}
	return one, nil
}

// readField reads a key of an entry.
func (c *caller) readField(key string, value any) (err error) {
	path := []string{key}
	if key == "roles" {
		c.grants, err = readGrants(path, value)
		return err
	}
	texts, ok := textsOf(value)
	switch {
	case !slices.Contains(callerKeys, key):
		return problemAt(path, "%s", unknownKey(key, callerKeys))
	case !ok:
		return problemAt(path, "%s must be a text or a list of texts", key)
	case key == "playbooks":
		c.playbooks = texts
		return nil
	case key == "role":
		if c.role = Role(strings.Join(texts, " ")); c.role != RoleViewer && c.role != RoleOperator {
			return problemAt(path, "role must be viewer or operator, for the page of runs; what a caller may do over HTTP is in roles")
		}
		return nil
	}
	for _, text := range texts {
		hash, err := hex.DecodeString(text)
		if err != nil || len(hash) != sha256.Size {
			return problemAt(path, "sha256 must be %d hexadecimal digits", 2*sha256.Size)
		}
		c.hashes = append(c.hashes, [sha256.Size]byte(hash))
	}
	return nil
}

func textsOf(value any) ([]string, bool) {
	if text, ok := value.(string); ok {
		return []string{text}, true
	}
	list, ok := value.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		text, isText := item.(string)
		texts[i], ok = text, ok && isText
	}
	return texts, ok
}

// NewToken creates a token for a caller, and its line for the file of callers. Each of roles has the form
// PATTERN=ROLE,ROLE. Without roles, empty playbooks means all, or none for a token with a role on the page of runs.
func NewToken(name string, playbooks []string, role Role, roles ...string) (token, line string, err error) {
	const size = 32
	if !callerName.MatchString(name) {
		return "", "", fmt.Errorf("%q is not a valid caller name: use at most 64 letters, digits, _ and -", name)
	}
	if name == providerKey {
		return "", "", fmt.Errorf("%q is the key of an identity provider in the file of callers; use another name", name)
	}
	secret := make([]byte, size)
	_, _ = rand.Read(secret) // never fails
	token = "rpr_" + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(token))
	fields := []string{fmt.Sprintf("sha256: %q", hex.EncodeToString(sum[:]))}
	quoted := lists.Map(playbooks, func(one string) string { return fmt.Sprintf("%q", one) })
	switch {
	case len(roles) > 0 && len(playbooks) > 0:
		return "", "", errors.New("playbooks and roles exclude each other: the role start of a pattern starts playbooks")
	case len(roles) > 0:
		granted, err := formatRoles(roles)
		if err != nil {
			return "", "", err
		}
		fields = append(fields, granted)
	case len(quoted) > 0 || role == RoleNone:
		fields = append(fields, fmt.Sprintf("playbooks: [%s]", cmp.Or(strings.Join(quoted, ", "), fmt.Sprintf("%q", anyPlaybook))))
	}
	if role != RoleNone {
		fields = append(fields, "role: "+string(role))
	}
	return token, fmt.Sprintf("%s: {%s}", name, strings.Join(fields, ", ")), nil
}
