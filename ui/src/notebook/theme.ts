/** The theme that a notebook states: JupyterLab and VS Code on the body, Colab on the root. */
export function pageTheme(): 'light' | 'dark' | null {
  const lab = document.body.dataset.jpThemeLight;
  if (lab !== undefined) return lab === 'false' ? 'dark' : 'light';
  const classes = document.body.classList;
  if (classes.contains('vscode-dark') || classes.contains('vscode-high-contrast')) return 'dark';
  if (classes.contains('vscode-light')) return 'light';
  const stated = document.documentElement.getAttribute('theme');
  return stated === 'dark' || stated === 'light' ? stated : null;
}
