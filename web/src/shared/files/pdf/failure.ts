/** failureOf returns why a document cannot be shown. */
export function failureOf(error: unknown): string {
	// The class would bring the parser along.
	if (error instanceof Error && error.name === "PasswordException")
		return "This PDF is encrypted. Download it to open it with its password.";
	return "This PDF cannot be shown: it is not what its type says, or it is damaged. You can still download it.";
}
