package main

import (
	"io"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logging is the server's logger with a switch to turn it off.
type logging struct {
	logger log.Logger
	level  zap.AtomicLevel
}

// noLevel is above every level that is logged.
const noLevel = zapcore.FatalLevel + 1

func newLogging(opts options, w io.Writer) logging {
	level := zap.NewAtomicLevelAt(noLevel)
	if opts.logLevel != "never" {
		// The command line was checked against a list of these names.
		_ = level.UnmarshalText([]byte(opts.logLevel))
	}
	encoder := zapcore.NewConsoleEncoder(log.DefaultZapEncoderConfig)
	if opts.logFormat == "json" {
		encoder = zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)
	return logging{logger: log.NewZapLogger(zap.New(core)), level: level}
}

func (l logging) silence() { l.level.SetLevel(noLevel) }
