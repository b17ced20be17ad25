package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/playbook"
)

const (
	// tolerance is how far the time of a signature may differ from now.
	tolerance = 5 * time.Minute
	// minSecret is the least length of a trigger's secret, in bytes.
	minSecret = 16
	// mostSignatures bounds the signatures in one Stripe header. Each costs an HMAC over the body, before anything is
	// known about the sender.
	mostSignatures = 16
)

// slackTime is the header with the time that Slack signs together with the body.
const slackTime = "X-Slack-Request-Timestamp"

var (
	errUnsigned = errors.New("the request carries no signature from this sender")
	errForged   = errors.New("the signature does not match the body and the secret")
)

// verifySignature checks that a body was signed as a trigger requires. The error says why not, for the log; it never
// reveals the secret.
func verifySignature(trigger *playbook.Trigger, secret string, header http.Header, body []byte, now time.Time) error {
	switch trigger.Sender {
	case playbook.GitHub:
		return verifyParts(header, trigger.SignatureHeader(), "sha256=", sha256.New, hex.DecodeString, secret, body)
	case playbook.Stripe:
		return verifyStripe(secret, header, trigger.SignatureHeader(), body, now)
	case playbook.Slack:
		return verifySlack(secret, header, trigger.SignatureHeader(), body, now)
	}
	algorithm, decode := sha256.New, hex.DecodeString
	if trigger.Algorithm == playbook.SHA512 {
		algorithm = sha512.New
	}
	if trigger.Encoding == playbook.Base64 {
		decode = base64.StdEncoding.DecodeString
	}
	return verifyParts(header, trigger.SignatureHeader(), trigger.Prefix, algorithm, decode, secret, body)
}

// singleValue returns the value of a header that must occur exactly once.
func singleValue(header http.Header, name string) (string, error) {
	if values := header.Values(name); len(values) == 1 {
		return values[0], nil
	}
	return "", errUnsigned
}

// verifyParts checks a signature over some parts, such as only the body.
func verifyParts(
	header http.Header, name, prefix string, algorithm func() hash.Hash, decode func(string) ([]byte, error), secret string, parts ...[]byte,
) error {
	value, err := singleValue(header, name)
	if err != nil {
		return err
	}
	text, found := strings.CutPrefix(value, prefix)
	signature, err := decode(text)
	if !found || err != nil || !hmac.Equal(signature, hmacSum(algorithm, secret, parts...)) {
		return errForged
	}
	return nil
}

func verifyStripe(secret string, header http.Header, name string, body []byte, now time.Time) error {
	value, err := singleValue(header, name)
	if err != nil {
		return err
	}
	at, signatures := "", []string{}
	for part := range strings.SplitSeq(value, ",") {
		switch key, text, _ := strings.Cut(strings.TrimSpace(part), "="); key {
		case "t":
			at = text
		case "v1":
			signatures = append(signatures, text)
		}
	}
	if len(signatures) > mostSignatures {
		return errForged
	}
	wanted, valid := hmacSum(sha256.New, secret, []byte(at+"."), body), false
	for _, text := range signatures { // several while a secret is changed
		signature, err := hex.DecodeString(text)
		valid = valid || err == nil && hmac.Equal(signature, wanted)
	}
	if !valid {
		return errForged
	}
	return checkTime(at, now)
}

func verifySlack(secret string, header http.Header, name string, body []byte, now time.Time) error {
	at, err := singleValue(header, slackTime)
	if err == nil {
		err = verifyParts(header, name, "v0=", sha256.New, hex.DecodeString, secret, []byte("v0:"+at+":"), body)
	}
	if err != nil {
		return err
	}
	return checkTime(at, now)
}

// checkTime refuses a signature with another time, which may be a replay.
func checkTime(text string, now time.Time) error {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errForged
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
		return fmt.Errorf("the signature's time is off by %s, and at most %s is allowed; check the clocks", off.Round(time.Second), tolerance)
	}
	return nil
}

func hmacSum(algorithm func() hash.Hash, secret string, parts ...[]byte) []byte {
	mac := hmac.New(algorithm, []byte(secret))
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
