# The words that people and CI both use.  Each works when it is the first one on a fresh clone.
# What a word does stands in tools/; this file only says which word calls what.

PYTHON ?= python3
PORT   ?= 8000
DRAWS  ?= 3000
RUN    := .venv/bin/python

# A PYTHONPATH from elsewhere would put other packages before the pinned ones.
unexport PYTHONPATH PYTHONHOME PYTHONSAFEPATH
export PYTHONUNBUFFERED = 1

.DEFAULT_GOAL := help
.PHONY: help serve test test-fast fuzz lint format book notebooks pdf zip lab assignments bench bench-gpu dist links audit pins setup browser bundle clean distclean

help: ## say what each word does
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

serve: setup ## build the book and serve it on http://127.0.0.1:8000 (PORT=8001 for another port)
	@$(RUN) -m tools.serve --check --port=$(PORT)
	@$(RUN) -m tools.book
	@$(RUN) -m tools.serve --port=$(PORT)

test: setup ## everything that proves the project: package, JavaScript, book, browser
	@$(RUN) -m tools.test

test-fast: setup ## the laws, without book and browser: about two minutes
	@$(RUN) -m tools.test --fast

fuzz: setup ## arbitrary arguments by the thousand (DRAWS=3000, SEED=… to repeat a run)
	@$(RUN) -m tools.fuzz --draws=$(DRAWS) $(if $(SEED),--seed=$(SEED))

lint: setup ## ruff and mypy over the Python, tsc over the JavaScript
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(RUN) -m tools.node npm run --silent typecheck

format: setup ## let ruff mend and format the Python
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

book: setup ## build the book into _build/html
	@$(RUN) -m tools.book

notebooks: setup ## write the chapters as notebooks, ready to publish, into _build/notebooks
	@$(RUN) -m tools.copies notebooks

pdf: setup browser ## print the book into one PDF, in dist
	@$(RUN) -m tools.pdf

zip: setup ## pack the site into one archive for reading without a network, in dist
	@$(RUN) -m tools.copies zip

lab: setup ## open the chapters as notebooks in JupyterLab
	@$(RUN) -m tools.lab

assignments: setup ## write the students' notebooks of the six assignments into dist/assignments
	@$(RUN) -m convgrad release book/assignments --to dist/assignments

dist: setup ## build the wheel and the source archive into dist
	@$(RUN) -m hatchling build

links: ## ask for every address outside the project over the network, and print those that are lost
	@$(PYTHON) -m tools.links

audit: setup ## ask over the network whether a weakness is known in what is pinned
	@$(RUN) -m tools.audit

pins: setup ## find versions for requirements.in (RENEW=all, or names, lets them move)
	@$(RUN) -m tools.pins $(if $(RENEW),--renew $(RENEW))

bench: setup book browser ## measure the rungs, the widgets' answers, live cells, a class of 200, the pages and their marks
	@$(RUN) -m benchmarks.rungs
	@$(RUN) -m benchmarks.layers
	@$(RUN) -m benchmarks.answers
	@$(RUN) -m benchmarks.live
	@$(RUN) -m benchmarks.classroom
	@$(RUN) -m tools.weigh
	@$(RUN) -m tools.lighthouse

bench-gpu: setup ## hold the kernels against PyTorch's on a GPU, in four minutes; without one, say so
	@$(RUN) -m benchmarks.gpu

setup: ## install what the other words need into .venv and node_modules
	@$(PYTHON) tools/bootstrap.py

browser: setup ## make sure that there is a Chromium for the browser tests
	@$(RUN) -m tools.chromium

bundle: setup ## build the JavaScript of the widgets and of the live cells
	@$(RUN) -m tools.node npm run --silent bundle

clean: ## remove what was built; keep what was installed
	@$(PYTHON) tools/clean.py

distclean: ## remove what was built and what was installed
	@$(PYTHON) tools/clean.py --all
