import { useMay } from "@/api/session";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Button } from "@/ui/button";
import { PlusIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { SecretDialog, VariableDialog } from "./dialogs";
import { Secrets } from "./secrets";
import { Variables } from "./variables";

export default function SecretsAndVariables() {
	const [filters, setFilters] = useFilters<"tab" | "new">();
	const write = useMay("write");
	const variables = filters.tab === "variables";
	const create = () => write && setFilters({ new: variables ? "variable" : "secret" });
	useShortcut("N", variables ? "New variable" : "New secret", create, "Secrets & variables");
	const close = (open: boolean) => !open && setFilters({ new: undefined }, { replace: true });
	return (
		<Page>
			<PageHeader
				title="Secrets & variables"
				lead="Values that workflows refer to by name."
				actions={
					write && (
						<Button kind="primary" icon={PlusIcon} onClick={create}>
							{variables ? "New variable" : "New secret"}
						</Button>
					)
				}
			/>
			<Tabs
				label="Secrets and variables"
				value={variables ? "variables" : "secrets"}
				onChange={(tab) => setFilters({ tab: tab === "variables" ? tab : undefined })}
				tabs={[
					{ value: "secrets", label: "Secrets", content: <Secrets onNew={create} /> },
					{ value: "variables", label: "Variables", content: <Variables onNew={create} /> },
				]}
			/>
			{write && filters.new === "secret" && <SecretDialog onOpenChange={close} />}
			{write && filters.new === "variable" && <VariableDialog onOpenChange={close} />}
		</Page>
	);
}
