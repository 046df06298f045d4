import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { type Session, sessionQuery } from "@/api/session";
import { stream } from "@/live/hooks";
import { inside } from "@/shell/gate";
import { forgetToken } from "./token";

/** useEnter makes a call that ends with somebody being signed in, and goes on to where they wanted. */
export function useEnter<Input>(call: (input: Input) => Promise<Session>, next: string | undefined) {
	const client = useQueryClient();
	const router = useRouter();
	const entering = useMutation({
		mutationFn: call,
		meta: { quiet: true },
		onSuccess: (session) => {
			forgetToken();
			// What another person has seen here is not for this one.
			client.clear();
			client.setQueryData(sessionQuery.queryKey, session);
			stream.forget();
			router.history.push(inside(next) ? next : "/workflows");
		},
	});
	const error = entering.error ? toApiError(entering.error) : undefined;
	/** Where no field is named, the whole form is meant. */
	const whole = error && error.fields.length === 0 ? error : undefined;
	return { enter: entering.mutate, busy: entering.isPending, error, whole };
}
