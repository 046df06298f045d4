import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Invitation() {
	return (
		<Page>
			<PageHeader title="Invitation" />
			<Card>
				<EmptyState title="Invitation" />
			</Card>
		</Page>
	);
}
