// Runs before the first paint, so that a dark page never flashes light. A file of its own: inline scripts are refused.
try {
  const chosen = localStorage.getItem('homeport-color-scheme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light')
} catch {
  // Without storage the page starts light.
}
