package ui

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestContrast: letters in the colours of statuses, and all others, are read on each background, on light and on dark pages.
func TestContrast(t *testing.T) {
	t.Parallel()
	const least = 4.5
	light, dark := colours(t)
	for scheme, of := range map[string]map[string]string{"light": light, "dark": dark} {
		letters := []string{"text", "faint", "bad", "good"}
		for _, info := range interpreter.Statuses() {
			letters = append(letters, string(info.Status))
		}
		pairs := [][2]string{{"on", "good"}, {"text", "mark"}, {"bad", "mark"}}
		for _, letter := range letters {
			pairs = append(pairs, [2]string{letter, "back"}, [2]string{letter, "card"})
		}
		for _, pair := range pairs {
			require.GreaterOrEqual(t, contrast(t, of[pair[0]], of[pair[1]]), least, "%s: %s (%s) on %s (%s)", scheme, pair[0], of[pair[0]], pair[1], of[pair[1]])
		}
	}
}

// colours are the variables of the style on light and on dark pages.
func colours(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	light, dark = map[string]string{}, map[string]string{}
	variable := regexp.MustCompile(`--([a-z_]+):\s*(#[0-9a-f]{3,6})`)
	rest := style
	for {
		before, after, found := strings.Cut(rest, "prefers-color-scheme")
		for _, one := range variable.FindAllStringSubmatch(before, -1) {
			light[one[1]] = one[2]
		}
		if !found {
			break
		}
		block, behind, closed := strings.Cut(after, "}")
		require.True(t, closed)
		for _, one := range variable.FindAllStringSubmatch(block, -1) {
			dark[one[1]] = one[2]
		}
		rest = behind
	}
	require.Len(t, dark, len(light), "each colour has one for dark pages")
	return light, dark
}

// contrast is that of two colours, as WCAG counts it: from 1 to 21.
func contrast(t *testing.T, one, other string) float64 {
	t.Helper()
	x, y := luminance(t, one), luminance(t, other)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	digits := strings.TrimPrefix(colour, "#")
	if len(digits) == 3 {
		digits = fmt.Sprintf("%c%[1]c%c%[2]c%c%[3]c", digits[0], digits[1], digits[2])
	}
	require.Len(t, digits, 6, colour)
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		part, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		value := float64(part) / 255
		if value <= 0.03928 {
			value /= 12.92
		} else {
			value = math.Pow((value+0.055)/1.055, 2.4)
		}
		sum += weight * value
	}
	return sum
}
