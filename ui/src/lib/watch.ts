/** Call an action while the page is seen, so that what other people do appears by itself. */
export function every(seconds: number, action: () => unknown): () => void {
  const timer = setInterval(() => { if (document.visibilityState === 'visible') action(); }, seconds * 1000);
  return () => clearInterval(timer);
}
