// What JupyterLab loads: a container of module federation, written by hand, so that no build step stands between
// these files and what runs. JupyterLab calls `init` with the packages that it shares, and `get` for our plugins.
{
  const here = document.currentScript.src;
  let shared;

  // Returns a package of JupyterLab's own, such as "@jupyterlab/notebook".
  const load = async (name) => {
    const versions = Object.values(shared[name] ?? {});
    if (!versions.length) throw new Error(`labkit: JupyterLab shares no ${name}`);
    const found = versions.find((each) => each.loaded) ?? versions[0];
    return (await found.get())();
  };

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB.labkit = {
    init(scope) {
      shared = scope;
    },
    async get() {
      const { plugins } = await import(new URL("plugins.js", here).href);
      const made = await plugins(load);
      return () => ({ __esModule: true, default: made });
    },
  };
}
