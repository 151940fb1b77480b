package env

import "github.com/spf13/pflag"

// setting is the annotation of a flag that has its value from elsewhere than
// the command line.
const setting = "clusterawsadm_setting"

// NoteSetting notes that a flag has its value from a setting: an environment
// variable, or a configuration file.
func NoteSetting(f *pflag.Flag, source string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[setting] = []string{source}
}

// SettingOf returns the setting that a flag has its value from; "" when it was
// typed, or has its default.
func SettingOf(f *pflag.Flag) string {
	if source := f.Annotations[setting]; len(source) == 1 {
		return source[0]
	}
	return ""
}
