import { useState } from "react";
import { direct, got } from "@/api/client";
import { PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { InvalidLink } from "./invalid-link";
import { useToken } from "./token";
import { useSignIn } from "./use-sign-in";

/** Reset sets a new password, using a link created on the server. */
export default function Reset() {
	const token = useToken();
	const [password, setPassword] = useState("");
	const { enter, busy, error, whole } = useSignIn(
		() => got(direct.POST("/ui/v1/password-reset", { body: { token, password } })),
		"/workflows",
	);
	if (token === "" || error?.code === "link_not_found") {
		return <InvalidLink>It is incomplete, has already been used or has expired. Ask for a new one.</InvalidLink>;
	}
	return (
		<Frame title="Choose a new password" lead="This signs you out everywhere else.">
			<Form verb="Set password" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<PasswordField label="New password" value={password} onChange={setPassword} error={error} fresh autoFocus />
			</Form>
		</Frame>
	);
}
