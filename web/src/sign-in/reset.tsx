import { useState } from "react";
import { direct, got } from "@/api/client";
import { Dead } from "./dead";
import { useEnter } from "./enter";
import { PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { useToken } from "./token";

/** Reset sets a new password, from a link that was made at the machine of the server. */
export default function Reset() {
	const token = useToken();
	const [password, setPassword] = useState("");
	const { enter, busy, error, whole } = useEnter(
		() => got(direct.POST("/ui/v1/password-reset", { body: { token, password } })),
		"/workflows",
	);
	if (token === "" || error?.code === "link_not_found") {
		return <Dead>It is not complete, was used already, or is too old. Ask for a new one.</Dead>;
	}
	return (
		<Frame title="Choose a new password" lead="All your other sessions end.">
			<Form verb="Set password" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<PasswordField label="New password" value={password} onChange={setPassword} error={error} fresh autoFocus />
			</Form>
		</Frame>
	);
}
