package s3

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// sdkLogger takes what the SDK has to say to where everything else is logged.
type sdkLogger struct{ to *slog.Logger }

func (l sdkLogger) Logf(class logging.Classification, format string, args ...any) {
	if class == logging.Warn {
		l.to.Warn("AWS SDK: " + fmt.Sprintf(format, args...))
		return
	}
	l.to.Debug("AWS SDK: " + fmt.Sprintf(format, args...))
}
