import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Settings() {
	return (
		<Page>
			<PageHeader title="Settings" />
			<Card>
				<EmptyState title="Nothing to set." />
			</Card>
		</Page>
	);
}
