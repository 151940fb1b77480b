package awssim

// ELBState stands in for the load balancers.
type ELBState struct{}

func newELBState() ELBState           { return ELBState{} }
func (a *AWS) simulateELB()           {}
func (a *AWS) settleELB()             {}
func (a *AWS) inventoryELB() []string { return nil }

// IAMState stands in for IAM.
type IAMState struct{}

func newIAMState() IAMState                      { return IAMState{} }
func (a *AWS) simulateIAM()                      {}
func (a *AWS) instanceProfileExists(string) bool { return true }
func (a *AWS) inventoryIAM() []string            { return nil }

// S3State stands in for S3.
type S3State struct{}

func newS3State() S3State            { return S3State{} }
func (a *AWS) simulateS3()           {}
func (a *AWS) inventoryS3() []string { return nil }

// SecretsState stands in for Secrets Manager.
type SecretsState struct{}

func newSecretsState() SecretsState       { return SecretsState{} }
func (a *AWS) simulateSecrets()           {}
func (a *AWS) inventorySecrets() []string { return nil }

func (a *AWS) simulateQuotas() {}
