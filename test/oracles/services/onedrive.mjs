import { FileUpload, OneDriveLargeFileUploadTask } from "@microsoft/microsoft-graph-client";
import "@pnp/graph/files/index.js";
import "@pnp/graph/permissions/drive-item.js";
import "@pnp/graph/shares/index.js";
import "@pnp/graph/sites/index.js";
import "@pnp/graph/subscriptions/index.js";
import "@pnp/graph/users/index.js";
import { GraphCollection } from "@pnp/graph";
import { listPages, oldClient, pnp } from "../microsoft.mjs";

/** @type {(client: any, i: any) => import("@pnp/graph/files/index.js").IDrive} */
const drive = ({ graph }, i) => (i.drive ? graph.drives.getById(i.drive) : graph.me.drive);
/**
 * PnPjs adds these methods at run time, in a way that TypeScript does not follow.
 * @typedef {object} Shares
 * @property {(link: import("@pnp/graph/shares/drive-item.js").ICreateShareLinkInfo) => Promise<any>} createSharingLink
 * @property {(info: import("@pnp/graph/permissions/drive-item.js").IPermissionsInviteInfo & {message?: string}) => Promise<any>} addPermissions
 */

/** @returns {import("@pnp/graph/files/index.js").IDriveItem & Shares} */
const item = (client, i, id = i.file) => /** @type {any} */ (drive(client, i).getItemById(id));
const typeOf = (name) => ({ pdf: "application/pdf", txt: "text/plain; charset=utf-8", zip: "application/zip" })[name.split(".").pop()];
const safe = (name) => name.replace(/[:*?"<>|]/g, "_");
// PnPjs takes a path as it is.
const path = (name) => safe(name).split("/").filter(Boolean).map(encodeURIComponent).join("/");
const ifMissing = (error) => {
  if (error.status !== 404) throw error;
};

async function large({ environment }, session, name, content, conflictBehavior = "replace") {
  const options = { fileName: name, conflictBehavior, uploadSessionURL: session, rangeSize: 9830400 };
  for (;;) {
    try {
      const task = await OneDriveLargeFileUploadTask.createTaskWithFileObject(oldClient(environment), new FileUpload(content, name ?? "any", content.length), options);
      task["uploadSession"].url = task["uploadSession"].url.replace(environment.at("https://"), "https://"); // it knows only https
      return await task.upload();
    } catch (error) {
      if (error.error?.code !== "itemNotFound" || !error.error?.message.includes("session")) throw error; // otherwise, anew
    }
  }
}

// changes reads a page of the changes of a drive, or where they are.
const changes = (client, i) => {
  const { root } = drive(client, i);
  if (!i.cursor) return root.delta({ token: "latest" })();
  return GraphCollection([root, client.environment.at(i.cursor.link)])();
};

/**
 * subscription registers, renews or removes what a hook is.
 * @param {any} client
 */
async function subscription({ graph }, i) {
  /** @type {import("@pnp/graph/subscriptions/index.js").ISubscriptions} */
  const subscriptions = graph.subscriptions;
  const until = new Date(Date.parse("2026-11-18T09:00:00Z") + 20 * 86400000).toISOString();
  switch (i.does) {
    case "register":
      return subscriptions.add("updated", i.hook.url, i.drive ? `drives/${i.drive}/root` : "me/drive/root", until, { clientState: i.hook.secret });
    case "renew":
      return subscriptions.getById(i.subscription.id).update({ expirationDateTime: until });
    default:
      return subscriptions.getById(i.subscription.id).delete().catch(ifMissing);
  }
}

const root = (i) => (i.drive ? `/drives/${i.drive}` : "/me/drive");

/** @type {import("../service.d.ts").Service<{graph: import("@pnp/graph").GraphFI, environment: import("../service.d.ts").Environment}>} */
export default {
  client: ["@pnp/graph", "@microsoft/microsoft-graph-client"],
  auth: "oauth2",
  secrets: { access_token: "made-up" },
  headers: ["content-range"],
  connect: (environment) => ({ graph: pnp(environment), environment }),
  operations: {
    "hooks/drive": subscription,
    upload_file: (client, i) => {
      const name = i.name ?? i.file.name;
      if (i.file.content.length < 4000000) {
        return item(client, i, i.folder ?? "root").upload({ content: i.file.content, filePathName: path(name), contentType: typeOf(i.file.name) });
      }
      return large(client, `${root(i)}/items/${i.folder ?? "root"}:/${path(name)}:/createUploadSession`, safe(name).split("/").pop(), i.file.content, i.if_exists);
    },
    replace_file: (client, i) =>
      i.content.content.length < 4000000
        ? item(client, i).upload({ content: i.content.content, contentType: typeOf(i.content.name) })
        : large(client, `${root(i)}/items/${i.file}/createUploadSession`, undefined, i.content.content),
    create_text_file: (client, i) =>
      item(client, i, i.folder ?? "root").upload({ content: i.text, filePathName: path(i.name), contentType: "text/plain; charset=utf-8" }),
    download_file: async (client, i) => {
      const file = item(client, i);
      if (!i.pdf) return file.getContent();
      await file();
      return file.convertContent("pdf");
    },
    get_file: (client, i) => item(client, i)(),
    find_file: (client, i) => drive(client, i).getItemByPath(path(i.path))().catch(ifMissing),
    list_files: (client, i) => listPages(item(client, i, i.folder ?? "root").children, i),
    "triggers/new_file": changes,
    "triggers/file_changed": changes,
    search_files: (client, i) => {
      const q = i.search.replaceAll("'", "''");
      if (!i.folder) return listPages(drive(client, i).root.search(q), i);
      const found = drive(client, i).root.search(q); // PnPjs searches whole drives
      found["_url"] = found.toUrl().replace("/root/", `/items/${i.folder}/`);
      return listPages(found, i);
    },
    create_folder: async (client, i) => {
      if (i.reuse) {
        const found = drive(client, i).getItemById(`${i.folder ?? "root"}:/${path(i.name)}`);
        const is = await found().catch(ifMissing);
        if (is) return;
      }
      await item(client, i, i.folder ?? "root").children.addFolder({ name: i.name, conflictBehavior: "fail" });
    },
    copy_file: async (client, i) => {
      const source = await item(client, i)();
      const monitor = await item(client, i).copyItem({ name: i.name, parentReference: i.folder && { driveId: source.parentReference.driveId, id: i.folder } });
      await fetch(monitor); // as the documentation says
    },
    move_file: async (client, i) => {
      const { id } = await item(client, i, i.folder).select("id")();
      await item(client, i).moveItem({ parentReference: { id }, name: i.name });
    },
    rename_file: (client, i) => item(client, i).update({ name: i.name }),
    create_link: (client, i) =>
      item(client, i).createSharingLink({
        type: i.type ?? "view",
        scope: i.scope,
        expirationDateTime: i.expires && new Date(i.expires).toISOString().replace(".000", ""),
        password: i.password,
      }),
    share_file: (client, i) =>
      item(client, i).addPermissions({
        recipients: i.people.map((email) => ({ email })),
        roles: [i.role ?? "read"],
        sendInvitation: i.notify ?? true,
        requireSignIn: i.sign_in ?? true,
        message: i.message,
      }),
    delete_file: (client, i) => item(client, i).delete(),
    list_drives: (client, i) => listPages(drives(client, i), i),
    list_choices: (client, i) => choices(client, i),
    list_folders: (client, i) => choices(client, i),
  },
  differences: [
    {
      operation: "download_file",
      test: "a file",
      request: 2,
      at: "headers/authorization",
      client: "Bearer made-up",
      why: "the address is the permission; the documentation says that no token is needed",
    },
    ...[
      ["upload_file", "an empty file in folders, with characters that are not allowed", "rename"],
      ["upload_file", "a file that exists", "fail"],
      ["create_text_file", "in a folder", "fail"],
    ].map(([operation, test, choice]) => ({
      operation,
      test,
      at: "query",
      ours: { "@microsoft.graph.conflictBehavior": choice },
      why: "PnPjs always replaces a file; the documentation of the resource has it in the URL",
    })),
  ],
};

function drives({ graph }, i) {
  if (!i.site) return (i.user ? graph.users.getById(i.user) : graph.me).drives;
  const [host, ...rest] = i.site.replace("https://", "").split("/").filter(Boolean);
  return graph.sites.getById(rest.length > 0 ? `${host}:/${rest.join("/")}:` : host).drives;
}

function choices(client, i) {
  const { root } = drive(client, i);
  return listPages(i.search ? root.search(i.search.replaceAll("'", "''")) : root.children, i);
}
