package testenv_test

import (
	"os"
	"testing"

	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		helperProcess()
		return
	}
	testenv.Main(m)
}
