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

	"reprise/internal/base/regular"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// anyPlaybook stands for all playbooks in the folder.
const anyPlaybook = "*"

// caller is a client that starts runs with a token.
type caller struct {
	name      string
	hashes    [][sha256.Size]byte // of the tokens
	playbooks []string
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

func (c *caller) mayRun(name string) bool {
	return slices.Contains(c.playbooks, anyPlaybook) || slices.Contains(c.playbooks, name)
}

// Callers are the callers listed in a file. Changes to the file apply from the next request on; while it is missing
// or unreadable, there are no callers. Callers are safe for concurrent use; nil has none.
type Callers struct {
	path string

	mu      sync.Mutex
	read    fileState
	callers []*caller
	// changed is called when the file has changed, with the error of reading it; nil for nobody.
	changed func(what string, err error)
	reason  string // the error that changed was last called with; "" if there was none
}

// callersFile is the name of the file in messages.
const callersFile = "the file of callers"

// onChange sets who is notified of a changed file. Nil callers have no file.
func (c *Callers) onChange(changed func(what string, err error)) {
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
// playbooks, the list of those that the caller may start; and role, what the caller may do on the page of runs.
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
			c.read, c.callers = fileState{}, nil
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
	callers, err := parseCallers(c.path, text)
	if err != nil {
		return err
	}
	c.read, c.callers = state, callers
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
func parseCallers(path string, text []byte) ([]*caller, error) {
	value, found := playbook.DecodeData(source.NewFile(path, text))
	if problems := found.Errors(); len(problems) > 0 {
		return nil, fmt.Errorf("read the callers: %s:%s: not a YAML map of callers [%s]", path, problems[0].Pos, problems[0].Code)
	}
	entries, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("read the callers: %s: expected a map of callers such as ci: {sha256: …, playbooks: [nightly]}", path)
	}
	var callers []*caller
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !callerName.MatchString(name) {
			return nil, fmt.Errorf("read the callers: %s: a caller's name consists of at most 64 letters, digits, _ and -", path)
		}
		one, err := parseCaller(name, entries[name])
		if err != nil {
			return nil, fmt.Errorf("read the callers: %s: %s: %w", path, name, err)
		}
		callers = append(callers, one)
	}
	return callers, nil
}

func parseCaller(name string, entry any) (*caller, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return nil, errors.New("expected a map such as {sha256: …, playbooks: [nightly]}")
	}
	one := &caller{name: name}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		texts, ok := textsOf(fields[key])
		switch {
		case !slices.Contains([]string{"sha256", "playbooks", "role"}, key):
			return nil, fmt.Errorf("the key %q is unknown, expected sha256, playbooks and role", key)
		case !ok:
			return nil, fmt.Errorf("%s must be a text or a list of texts", key)
		case key == "playbooks":
			one.playbooks = texts
			continue
		case key == "role":
			if one.role = Role(strings.Join(texts, " ")); one.role != RoleViewer && one.role != RoleOperator {
				return nil, errors.New("role must be viewer or operator")
			}
			continue
		}
		for _, text := range texts {
			hash, err := hex.DecodeString(text)
			if err != nil || len(hash) != sha256.Size {
				return nil, fmt.Errorf("sha256 must be %d hexadecimal digits", 2*sha256.Size)
			}
			one.hashes = append(one.hashes, [sha256.Size]byte(hash))
		}
	}
	if len(one.hashes) == 0 || len(one.playbooks) == 0 && one.role == RoleNone {
		return nil, errors.New("needs sha256 (the hash of a token), and playbooks (those the caller may start) or role (viewer or operator of the web page)")
	}
	return one, nil
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

// NewToken creates a token for a caller, and its line for the file of callers. Empty playbooks means all, or none for
// a token with a role.
func NewToken(name string, playbooks []string, role Role) (token, line string, err error) {
	const size = 32
	if !callerName.MatchString(name) {
		return "", "", fmt.Errorf("%q is not a valid caller name: use at most 64 letters, digits, _ and -", name)
	}
	secret := make([]byte, size)
	_, _ = rand.Read(secret) // never fails
	token = "rpr_" + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(token))
	quoted := lists.Map(playbooks, func(one string) string { return fmt.Sprintf("%q", one) })
	fields := []string{fmt.Sprintf("sha256: %q", hex.EncodeToString(sum[:]))}
	if len(quoted) > 0 || role == RoleNone {
		fields = append(fields, fmt.Sprintf("playbooks: [%s]", cmp.Or(strings.Join(quoted, ", "), fmt.Sprintf("%q", anyPlaybook))))
	}
	if role != RoleNone {
		fields = append(fields, "role: "+string(role))
	}
	return token, fmt.Sprintf("%s: {%s}", name, strings.Join(fields, ", ")), nil
}
