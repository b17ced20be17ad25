package credential

import (
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const digits = "0123456789"

const (
	// MinDistinct is the minimum length of a text that cannot be a word, in bytes.
	MinDistinct  = 8
	longDistinct = 20
)

// LooksSecret reports whether a text cannot be a word, a name, a number or a date: it has at least 8 bytes with
// letters and digits, or with characters that names do not have, or at least 20 bytes.
func LooksSecret(text string) bool {
	letters, numbers, others := false, false, false
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			numbers = true
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters = true
		case !strings.ContainsRune("-_./:", rune(c)):
			others = true
		}
	}
	return len(text) >= longDistinct || len(text) >= MinDistinct && (letters && numbers || others)
}

// beginnings are prefixes of the tokens of providers.
const beginnings = `(?:sk|rk|pk)_(?:live|test)_|sk-|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|shpat_|shpss_|shpca_|ntn_|AKIA|ASIA|SG\.|EAA|ya29\.|AIza|whsec_|lin_api_|dop_v1_|sntrys_`

// likeWords are prefixes of tokens that words may have too.
const likeWords = `(?:sk|rk|pk)_|pat-|key-|secret_|npm_|hf_`

// webToken matches a JSON Web Token.
const webToken = `eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*`

var (
	// token matches texts that are certainly tokens. wordyToken matches prefixes that words may have too: such a
	// text is a token only if it contains digits.
	token      = regexp.MustCompile(`^(?:(?:` + beginnings + `)[A-Za-z0-9_.~+/=-]{4,}|eyJ[A-Za-z0-9_-]{10,}\..*)$`)
	wordyToken = regexp.MustCompile(`^(?:` + likeWords + `)[A-Za-z0-9_.~+/=-]{4,}$`)
	// tokenInside matches tokens within a text.
	tokenInside = regexp.MustCompile(`\b(?:` + beginnings + `|secret_|npm_|hf_)[A-Za-z0-9_.-]{12,}|\b` + webToken)
)

// IsToken reports whether a text can only be a token, judging by its prefix.
func IsToken(text string) bool {
	return token.MatchString(text) || wordyToken.MatchString(text) && strings.ContainsAny(text, digits)
}

// address matches URLs within a text.
var address = regexp.MustCompile(`https?://[^\s"'<>\\{}|^` + "`" + `]+`)

func isAddress(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// hooks are path segments of webhook URLs: the segments after them work like a password.
var hooks = []string{"webhook", "webhooks", "webhookb2", "webhook-test", "incomingwebhook", "hook", "hooks"}

// hookHosts are hosts that only serve webhooks.
var hookHosts = []string{"hooks.slack.com", "hooks.slack-gov.com", "hooks.zapier.com", "webhook.office.com", "hook.make.com", "hook.eu1.make.com", "hook.eu2.make.com", "hook.us1.make.com", "maker.ifttt.com"}

// beforeKey are path segments before a key.
var beforeKey = []string{"key", "keys", "token", "tokens", "secret", "apikey", "api_key", "api-key", "auth"}

var (
	word   = regexp.MustCompile(`^([a-z]{1,24}|[a-z]+([-_.][a-z]+)+|v[0-9]+([._-][0-9a-z]+)?|[0-9]+|\{.*\})$`)
	bot    = regexp.MustCompile(`^bot[0-9]+(:|%3[Aa])[A-Za-z0-9_-]{20,}$`)
	hexKey = regexp.MustCompile(`^(?:[0-9a-f]{32,}|[0-9A-F]{32,})$`)
)

// PathSecrets returns the segments of a path that are secrets, by their shapes and preceding segments. host is
// the address's host, "" if unknown.
func PathSecrets(host, path string) []string { return pathSecrets(host, path, false) }

// PathSuspects returns PathSecrets, and further segments that may be secrets because they look like neither a name
// nor a number.
func PathSuspects(host, path string) []string { return pathSecrets(host, path, true) }

func pathSecrets(host, path string, suspects bool) (found []string) {
	host = strings.ToLower(host)
	inHook := slices.ContainsFunc(hookHosts, func(one string) bool { return host == one || strings.HasSuffix(host, "."+one) })
	before := ""
	for _, segment := range strings.Split(path, "/") {
		text := segment
		if decoded, err := url.PathUnescape(segment); err == nil {
			text = decoded
		}
		lower := strings.ToLower(text)
		isHook := slices.Contains(hooks, lower)
		switch {
		case text == "", isHook:
		case IsToken(text) && len(text) >= 12, bot.MatchString(text),
			inHook && !word.MatchString(text),
			slices.Contains(beforeKey, before) && LooksSecret(text) && strings.ContainsAny(text, digits),
			suspects && IsRandom(text):
			found = append(found, segment)
		}
		inHook = inHook || isHook
		before = lower
	}
	return found
}

// FirstPathSecret returns the first secret segment of a URL's path, "" for none.
func FirstPathSecret(of string) string {
	parsed, err := url.Parse(of)
	if err != nil {
		return ""
	}
	for _, segment := range PathSecrets(parsed.Hostname(), parsed.EscapedPath()) {
		return segment
	}
	return ""
}

// IsRandom reports whether a text looks randomly generated: a key in hex, or letters and digits in no order. UUIDs
// and other IDs do not count, because they are names of things.
func IsRandom(text string) bool {
	if hexKey.MatchString(text) {
		return strings.ContainsAny(strings.ToLower(text), "abcdef") && strings.ContainsAny(text, digits)
	}
	const shortest, leastSwitches, leastEntropy = 20, 5, 3.3
	switches, kinds, last := 0, 0, byte(0)
	seen := map[byte]bool{}
	for i := range len(text) {
		kind := characterClass(text[i])
		if kind == 0 {
			return false
		}
		if !seen[kind] && kind != 's' {
			seen[kind] = true
			kinds++
		}
		if kind == 's' {
			continue
		}
		if last != 0 && kind != last && (last != 'A' || kind != 'a') { // a capital letter begins a word
			switches++
		}
		last = kind
	}
	return len(text) >= shortest && seen['0'] && kinds > 1 && switches >= leastSwitches && entropyBits(text) >= leastEntropy && !id.MatchString(text)
}

// characterClass returns the class of a character of keys: a, A, 0, s for a separator, 0 for any other.
func characterClass(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	case strings.IndexByte("-_.~=:@", c) >= 0:
		return 's'
	}
	return 0
}

// id matches IDs of things: a UUID, or an ObjectId.
var id = regexp.MustCompile(`^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-f]{24})$`)

// entropyBits returns the average number of bits of information per character of the text.
func entropyBits(text string) (bits float64) {
	counts := map[byte]int{}
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		share := float64(counts[c]) / float64(len(text))
		bits -= share * math.Log2(share)
	}
	return bits
}
