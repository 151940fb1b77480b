package cluster

// KubeconfigOptions say how kubectl gets tokens for an EKS cluster. Other clusters
// ignore them.
type KubeconfigOptions struct {
	Profile string // of the AWS configuration that tokens are made with; "" for that of the environment
	// Method is the program that creates tokens: clusterawsadm, aws-cli or
	// iam-authenticator. If it is "", the value of tokenMethod of the
	// AWSManagedControlPlane is used, or clusterawsadm if the manifest does not set it.
	Method string
}
