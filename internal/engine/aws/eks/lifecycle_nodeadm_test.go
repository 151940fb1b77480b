package eks_test
