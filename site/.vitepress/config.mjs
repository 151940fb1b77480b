// The site is made of the Markdown in docs/, which is also read on GitHub as it is, and of
// docs/commands, which "make docs" generates.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const docs = fileURLToPath(new URL("../../docs", import.meta.url));
const repository = "https://github.com/clusterawsadm/clusterawsadm";

const base = process.env.SITE_BASE ?? "/";

const page = (text, link) => ({ text, link });

const commands = readdirSync(`${docs}/commands`)
  .filter((file) => file.endsWith(".md"))
  .map((file) => page(file.slice(0, -3).replace("clusterawsadm_", "").replaceAll("_", " "), `/commands/${file.slice(0, -3)}`));

// boostDocument puts guides before the reference, which has many short pages, and records of decisions behind it.
const boostDocument = (id) => {
  if (id.includes("/guides/")) return 3
  return id.includes("/adr/") ? 0.5 : 1
}

export default defineConfig({
  title: "clusterawsadm",
  description: "Kubernetes clusters on AWS from Cluster API manifests, without a management cluster",
  base,
  titleTemplate: ":title · clusterawsadm",
  lang: "en",
  head: [["meta", { property: "og:image", content: `${base}quickstart.svg` }]],
  lastUpdated: false,
  srcDir: "../docs",
  outDir: "../.cache/site",
  cacheDir: "../.cache/vitepress",
  cleanUrls: true,
  rewrites: { "guides/README.md": "guides/index.md", "adr/README.md": "adr/index.md" },
  // Links from the documents to the repository lead to GitHub; dead links fail the build.
  markdown: {
    config(md) {
      const render = md.renderer.rules.link_open ?? ((tokens, i, options, _, self) => self.renderToken(tokens, i, options));
      md.renderer.rules.link_open = (tokens, i, options, env, self) => {
        const [, inRepository] = tokens[i].attrGet("href")?.match(/^(?:\.\.\/)+((?:configs|internal|pkg|e2e|test|hack|README|CONTRIBUTING|CHANGELOG|SECURITY).*)/) ?? [];
        if (inRepository) {
          tokens[i].attrSet("href", `${repository}/blob/main/${inRepository}`);
        }
        return render(tokens, i, options, env, self);
      };
    },
  },
  // The documents are outside of this folder, and so do not find its packages by themselves.
  vite: { resolve: { alias: [{ find: /^vue(\/.*)?$/, replacement: `${fileURLToPath(new URL("../node_modules/vue", import.meta.url))}$1` }] } },
  themeConfig: {
    outline: [2, 3],
    // Words in the middle of names such as security-group and upgrade-plan are found, too; a title counts most.
    search: {
      provider: "local",
      options: {
        miniSearch: {
          options: { tokenize: (text) => text.split(/[\s\p{P}]+/u).concat(text.match(/[\w-]+-[\w-]+/g) ?? []).filter(Boolean) },
          searchOptions: { fuzzy: 0.2, prefix: true, combineWith: "AND", boost: { title: 6, titles: 2, text: 1 }, boostDocument },
        },
      },
    },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
    nav: [page("Install", "/guides/install"), page("Guides", "/guides/first-cluster"), page("Reference", "/commands/clusterawsadm"), page("Design", "/design")],
    sidebar: [
      {
        text: "Guides",
        items: [
          page("Install", "/guides/install"),
          page("The first cluster", "/guides/first-cluster"),
          page("Examples", "/guides/examples"),
          page("What the commands do", "/guides/commands"),
          page("An EKS cluster", "/guides/eks"),
          page("An existing VPC", "/guides/existing-vpc"),
          page("Helm charts", "/guides/charts"),
          page("Editors", "/guides/editors"),
          page("Change and upgrade", "/guides/change-and-upgrade"),
          page("Back up", "/guides/backup"),
          page("Delete", "/guides/delete"),
          page("Continuous integration", "/guides/ci"),
          page("Moving from other tools", "/guides/moving"),
          page("Management clusters", "/management-clusters"),
          page("How it works", "/guides/how-it-works"),
          page("Limitations", "/guides/limitations"),
          page("Troubleshooting", "/guides/troubleshooting"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Commands of upstream", "/guides/upstream"),
          page("Differences from upstream", "/compatibility"),
          page("Events", "/events"),
          page("Simulator", "/simulator"),
          page("What it relies on AWS for", "/aws"),
          page("Glossary", "/glossary"),
          { text: "Commands", collapsed: true, items: commands },
        ],
      },
      {
        text: "Development",
        items: [page("Design", "/design"), page("Tests", "/testing"), page("Decisions", "/adr/")],
      },
    ],
  },
});
