// The site is made of the Markdown in docs/, which is also read on GitHub as it is, and of
// docs/commands, which "make docs" generates.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const docs = fileURLToPath(new URL("../../docs", import.meta.url));
const repository = "https://github.com/clusterawsadm/clusterawsadm";

const page = (text, link) => ({ text, link });

const commands = readdirSync(`${docs}/commands`)
  .filter((file) => file.endsWith(".md"))
  .map((file) => page(file.slice(0, -3).replace("clusterawsadm_", "").replaceAll("_", " "), `/commands/${file.slice(0, -3)}`));

export default defineConfig({
  title: "clusterawsadm",
  description: "Kubernetes clusters on AWS from Cluster API manifests, without a management cluster",
  base: process.env.SITE_BASE ?? "/",
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
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
    nav: [page("Guides", "/guides/first-cluster"), page("Reference", "/commands/clusterawsadm"), page("Design", "/design")],
    sidebar: [
      {
        text: "Guides",
        items: [
          page("The first cluster", "/guides/first-cluster"),
          page("An EKS cluster", "/guides/eks"),
          page("An existing VPC", "/guides/existing-vpc"),
          page("Editors", "/guides/editors"),
          page("Change and upgrade", "/guides/change-and-upgrade"),
          page("Delete", "/guides/delete"),
          page("Continuous integration", "/guides/ci"),
          page("Moving from other tools", "/guides/moving"),
          page("Management clusters", "/management-clusters"),
          page("How it works", "/guides/how-it-works"),
          page("Troubleshooting", "/guides/troubleshooting"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Differences from upstream", "/compatibility"),
          page("Events", "/events"),
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
