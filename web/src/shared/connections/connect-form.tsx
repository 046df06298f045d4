import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, direct, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { bareName } from "../own";
import { AppForm } from "./app-form";
import { useHostConfirmation } from "./confirm-hosts";
import { openConsent } from "./consent";
import { ConsentError } from "./consent-error";
import { ConsentWait } from "./consent-wait";
import { CustomForm } from "./custom";
import type { Connection, Integration } from "./data";
import { DeviceWait } from "./device-wait";
import { Fields } from "./fields";
import {
	certificateFields,
	customFields,
	defaultsOf,
	definitionOf,
	emptyCustom,
	givenFields,
	isComplete,
	isDefined,
	kinds,
	needsConsent,
	proposeName,
	usesDeviceCode,
} from "./form";
import { LinkedText } from "./linked-text";
import { RedirectUrl } from "./redirect-url";
import { TlsForm } from "./tls-form";

interface ConnectFormProps {
	/** Null for a custom connection. */
	service: Integration | null;
	/** The names that are in use. */
	taken: readonly string[];
	onBack: () => void;
	onClose: () => void;
	onConnected: (connection: Connection) => void;
}

/** ConnectForm asks for what a service needs, and makes the connection. */
export function ConnectForm({ service, taken, onBack, onClose, onConnected }: ConnectFormProps) {
	const [name, setName] = useState(() => proposeName(bareName(service?.id ?? "custom"), taken));
	const [auth, setAuth] = useState(service?.auth[0]?.id ?? "api_key");
	const [custom, setCustom] = useState(emptyCustom);
	const [values, setValues] = useState<Record<string, string>>(() => defaultsOf(service?.auth[0]?.fields ?? []));
	const client = useQueryClient();
	const way = service?.auth.find(({ id }) => id === auth);
	const main = service ? (way?.fields ?? []) : customFields(auth, custom);
	const fields = service ? main : [...main, ...certificateFields(auth, custom)];
	const consent = needsConsent(way, auth, custom);
	const device = !service && usesDeviceCode(auth, custom);
	const confirmation = useHostConfirmation(service);
	const finish = async (connection: Connection) => {
		await client.invalidateQueries({ queryKey: ["connections"] });
		onConnected(connection);
	};
	const connect = useMutation({
		meta: { quiet: true },
		mutationFn: async () => {
			const body = {
				name: name.trim(),
				auth,
				fields: givenFields(fields, values),
				...(service ? { integration: service.id } : { definition: definitionOf(auth, custom) }),
				...(confirmation.hosts && { hosts: confirmation.hosts }),
			};
			if (!consent) {
				await finish(await got(api.POST("/v1/connections", { body })));
				return undefined;
			}
			if (device) return { device: await got(direct.POST("/ui/v1/connections/connect-device", { body })) };
			const { authorize_url: url } = await got(direct.POST("/ui/v1/connections/connect", { body }));
			return { consent: openConsent(url) };
		},
		onError: confirmation.onError,
	});
	const error = connect.error ? toApiError(connect.error) : undefined;
	const choose = (next: string) => {
		setAuth(next);
		setValues(defaultsOf(service?.auth.find(({ id }) => id === next)?.fields ?? []));
		connect.reset();
	};
	const serviceName = service?.name ?? "the service";
	const title = service ? `Connect ${service.name}` : "Custom connection";
	if (connect.data) {
		const wait = { title, onClose, onAgain: () => connect.reset(), onConnected: finish };
		return connect.data.device ? (
			<DeviceWait {...wait} device={connect.data.device} />
		) : (
			<ConsentWait {...wait} serviceName={serviceName} consent={connect.data.consent} />
		);
	}
	if (service && way && error?.code === "oauth_app_missing") {
		return (
			<AppForm
				service={service}
				way={way}
				onClose={onClose}
				onBack={() => connect.reset()}
				onSaved={() => connect.mutate()}
			/>
		);
	}
	const confirm = confirmation.control(error?.field("/hosts"));
	const taught = new Set(["/name", ...(confirm ? ["/hosts"] : []), ...fields.map(({ name }) => `/fields/${name}`)]);
	const placed =
		error?.fields.length &&
		error.fields.every(({ pointer }) => taught.has(pointer) || (!service && pointer.startsWith("/definition/")));
	const nameError = error?.field("/name") ?? (error?.code === "connection_exists" ? error.message : undefined);
	const ready =
		name.trim() !== "" &&
		!confirmation.isMissing &&
		isComplete(fields, values) &&
		(service !== null || (isDefined(auth, custom) && (main.length > 0 || auth === "client_certificate")));
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={title}
			description={
				service && consent
					? `You allow access in a window of ${service.name}.`
					: way?.help && <LinkedText text={way.help} />
			}
			guarded
			onSubmit={() => ready && connect.mutate()}
			actions={
				<>
					<Button onClick={onBack}>Back</Button>
					<Button type="submit" kind="primary" busy={connect.isPending} disabled={!ready}>
						{connectLabel(consent, device, serviceName)}
					</Button>
				</>
			}
		>
			{(!service || service.auth.length > 1) && (
				<Field label="Authenticate with" error={error?.field("/auth")}>
					<NativeSelect
						value={auth}
						onChange={(event) => choose(event.target.value)}
						options={service ? service.auth.map(({ id, label }) => ({ value: id, label })) : kinds}
					/>
				</Field>
			)}
			<Field label="Name" required error={nameError} hint="Steps refer to it by this name.">
				<TextInput
					value={name}
					maxLength={63}
					spellCheck={false}
					className="font-mono text-12"
					onChange={(event) => setName(event.target.value)}
				/>
			</Field>
			{!service && <CustomForm kind={auth} draft={custom} onChange={setCustom} error={error} />}
			<Fields fields={main} values={values} onChange={setValues} error={error} />
			{!service && (
				<TlsForm kind={auth} draft={custom} onDraft={setCustom} values={values} onValues={setValues} error={error} />
			)}
			{confirm}
			{service && consent && (
				<details>
					<summary className="text-muted hover:text-text">How to register the OAuth app</summary>
					<div className="mt-2 flex flex-col gap-2">
						{way?.help && (
							<p>
								<LinkedText text={way.help} />
							</p>
						)}
						<RedirectUrl serviceName={service.name} />
					</div>
				</details>
			)}
			{error &&
				!nameError &&
				!placed &&
				(device ? <ErrorNote error={error} /> : <ConsentError error={error} serviceName={serviceName} />)}
		</Dialog>
	);
}

function connectLabel(consent: boolean, device: boolean, serviceName: string): string {
	if (!consent) return "Connect";
	return device ? "Get a code" : `Continue to ${serviceName}`;
}
