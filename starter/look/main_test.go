package look

import (
	"testing"
	"time"

	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience is how long a test waits for what happens at once.
var patience = testenv.Within(time.Minute)
