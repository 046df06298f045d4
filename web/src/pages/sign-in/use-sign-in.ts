import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { type Session, sessionQuery } from "@/api/session";
import { stream } from "@/live/hooks";
import { isInternalPath } from "@/shell/require-session";
import { forgetToken } from "./token";

/** useSignIn makes a call that signs the user in, then navigates to the page they wanted. */
export function useSignIn<Input>(call: (input: Input) => Promise<Session>, next: string | undefined) {
	const client = useQueryClient();
	const router = useRouter();
	const entering = useMutation({
		mutationFn: call,
		meta: { quiet: true },
		onSuccess: (session) => {
			forgetToken();
			// Data of the previous user must not be shown to this one.
			client.clear();
			client.setQueryData(sessionQuery.queryKey, session);
			stream.reset();
			router.history.push(isInternalPath(next) ? next : "/workflows");
		},
	});
	const error = entering.error ? toApiError(entering.error) : undefined;
	/** An error that names no field applies to the whole form. */
	const whole = error && error.fields.length === 0 ? error : undefined;
	return { enter: entering.mutate, busy: entering.isPending, error, whole };
}
