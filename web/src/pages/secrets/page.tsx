import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Secrets() {
	return (
		<Page>
			<PageHeader title="Secrets & variables" />
			<Card>
				<EmptyState title="No secrets yet." />
			</Card>
		</Page>
	);
}
